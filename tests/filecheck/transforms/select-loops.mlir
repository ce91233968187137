// What is the same in all trips of a loop is packed once in front of it.

// RUN: glow-opt %s -p 'assign-target{target=avx2},select,verify-selected,verify-low' --split-input-file | filecheck %s
// RUN: glow-opt %s -p 'assign-target{target="avx2,ram_bytes=100000"},select,verify-selected' --split-input-file | filecheck %s --check-prefix=LIMITED

// In front of the outermost loop that leaves it as it is, once for all that read it alike, and freed behind that loop.

// CHECK-LABEL: glow_low.func @same(
// CHECK:         %[[VIEW:.*]] = glow_low.view %w : memref<8x20xf32> to memref<8x20xf32>
// CHECK-NEXT:    %[[PACKED:.*]] = glow_low.alloc : memref<2x8x16xf32>
// CHECK-NEXT:    glow_low.pack @out %[[PACKED]], @in %[[VIEW]] {layout = {form = "panels", shape = [8, 20], panel = 16}, kernel = "pack"}
// CHECK-NEXT:    glow_low.loop
// CHECK-NEXT:      glow_low.loop
// CHECK-NOT:         glow_low.pack
// CHECK:             glow_low.matmul @out %y, @in %{{.*}}, @in %[[PACKED]] {{{.*}}packing = {right = {form = "panels", shape = [8, 20], panel = 16}}}
// CHECK-NEXT:        glow_low.matmul @out %y, @in %{{.*}}, @in %[[PACKED]] {{{.*}}packing
// CHECK:         glow_low.dealloc @out %[[PACKED]]

// Where memory is limited, it lives no longer than it is read.

// LIMITED-LABEL: glow_low.func @same(
// LIMITED-NOT:     glow_low.pack
glow_high.placeholder @x : tensor<3x4x8xf32> {input}
glow_high.placeholder @w : tensor<8x20xf32> {input}
glow_high.placeholder @y : tensor<4x20xf32> {output}
glow_low.func @same(@x, @w, @y) {
  %x = glow_low.weight @x : memref<3x4x8xf32>
  %w = glow_low.weight @w : memref<8x20xf32>
  %y = glow_low.weight @y {mutable} : memref<4x20xf32>
  glow_low.loop %i = 3 {
    glow_low.loop %j = 5 {
      %row = glow_low.window %x[%i by 32] : memref<3x4x8xf32> to memref<4x8xf32>
      glow_low.matmul @out %y, @in %row, @in %w
      glow_low.matmul @out %y, @in %row, @in %w
    }
  }
}

// -----

// One that moves with the outer loop is packed in front of the inner one.

// CHECK-LABEL: glow_low.func @moves(
// CHECK:         glow_low.loop %[[I:.*]] = 3 {
// CHECK-NEXT:      %[[WINDOW:.*]] = glow_low.window %w[%[[I]] by 160] : memref<3x8x20xf32> to memref<8x20xf32>
// CHECK-NEXT:      %[[PACKED:.*]] = glow_low.alloc : memref<2x8x16xf32>
// CHECK-NEXT:      glow_low.pack @out %[[PACKED]], @in %[[WINDOW]]
// CHECK-NEXT:      glow_low.loop
glow_high.placeholder @x : tensor<4x8xf32> {input}
glow_high.placeholder @w : tensor<3x8x20xf32> {input}
glow_high.placeholder @y : tensor<4x20xf32> {output}
glow_low.func @moves(@x, @w, @y) {
  %x = glow_low.weight @x : memref<4x8xf32>
  %w = glow_low.weight @w : memref<3x8x20xf32>
  %y = glow_low.weight @y {mutable} : memref<4x20xf32>
  glow_low.loop %i = 3 {
    glow_low.loop %j = 5 {
      %part = glow_low.window %w[%i by 160] : memref<3x8x20xf32> to memref<8x20xf32>
      glow_low.matmul @out %y, @in %x, @in %part
    }
  }
}

// -----

// What a trip writes, or has of its own, is packed in each, and so is what a loop reads that surely has but one.

// CHECK-LABEL: glow_low.func @differs(
// CHECK-NOT:     glow_low.pack
glow_high.placeholder @x : tensor<8x8xf32> {input}
glow_high.placeholder @w : tensor<8x8xf32> {input}
glow_high.placeholder @y : tensor<8x8xf32> {output}
glow_low.func @differs(@x, @w, @y) {
  %x = glow_low.weight @x : memref<8x8xf32>
  %w = glow_low.weight @w : memref<8x8xf32>
  %y = glow_low.weight @y {mutable} : memref<8x8xf32>
  %a = glow_low.alloc : memref<8x8xf32>
  glow_low.copy @out %a, @in %x
  glow_low.loop %i = 3 {
    %b = glow_low.alloc : memref<8x8xf32>
    glow_low.matmul @out %b, @in %w, @in %a
    glow_low.matmul @out %a, @in %w, @in %b
    glow_low.dealloc @out %b
  }
  glow_low.loop %j = 1 {
    glow_low.matmul @out %y, @in %a, @in %w
  }
  glow_low.dealloc @out %a
}
