// Branches, and loops whose trips are counted at run time, printed and parsed back.

// RUN: glow-opt %s -p verify-low | glow-opt | filecheck %s
// RUN: glow-opt %s --print-op-generic | glow-opt | filecheck %s

// CHECK-LABEL: glow_low.func @branch(
// CHECK:         glow_low.if @in %flag {
// CHECK-NEXT:      glow_low.relu @out %y, @in %x
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[T:.*]] = glow_low.alloc : memref<4xf32>
// CHECK-NEXT:      glow_low.neg @out %[[T]], @in %x
// CHECK-NEXT:      glow_low.exp @out %y, @in %[[T]]
// CHECK-NEXT:      glow_low.dealloc @out %[[T]]
// CHECK-NEXT:    }
// CHECK-NEXT:    glow_low.if @in %flag {
// CHECK-NEXT:      glow_low.relu @out %y, @in %x
// CHECK-NEXT:    }
// CHECK-NEXT:  }
glow_low.func @branch(@in %x: memref<4xf32>, @in %flag: memref<i1>, @out %y: memref<4xf32>) {
  glow_low.if @in %flag {
    glow_low.relu @out %y, @in %x
  } else {
    %0 = glow_low.alloc : memref<4xf32>
    glow_low.neg @out %0, @in %x
    glow_low.exp @out %y, @in %0
    glow_low.dealloc @out %0
  }
  glow_low.if @in %flag {
    glow_low.relu @out %y, @in %x
  }
}

// CHECK-LABEL: glow_low.func @loops(
// CHECK:         glow_low.loop %{{.*}} = @in %n {
// CHECK:         glow_low.loop %{{.*}} = 9 while @in %[[GO:.*]] {
// CHECK-NEXT:      glow_low.neg @out %y, @in %y
// CHECK-NEXT:      glow_low.not @out %[[GO]], @in %[[GO]]
// CHECK-NEXT:    }
// CHECK-NEXT:    glow_low.loop %{{.*}} = @in %n while @in %[[GO]] {
// CHECK:         glow_low.loop %{{.*}} while @in %[[GO]] {
glow_low.func @loops(@in %x: memref<4xf32>, @in %flag: memref<i1>, @in %n: memref<i64>, @out %y: memref<4xf32>) {
  %go = glow_low.alloc : memref<i1>
  glow_low.copy @out %go, @in %flag
  glow_low.copy @out %y, @in %x
  glow_low.loop %i = @in %n {
    glow_low.exp @out %y, @in %y
  }
  glow_low.loop %i = 9 while @in %go {
    glow_low.neg @out %y, @in %y
    glow_low.not @out %go, @in %go
  }
  glow_low.loop %i = @in %n while @in %go {
    glow_low.neg @out %y, @in %y
    glow_low.not @out %go, @in %go
  }
  glow_low.loop %i while @in %go {
    glow_low.not @out %go, @in %go
  }
  glow_low.dealloc @out %go
}
