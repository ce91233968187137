// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: llvm.store %v, %p atomic release {alignment = 4 : i64} : i32, !llvm.ptr
llvm.func @fine(%p: !llvm.ptr, %v: i32) {
  llvm.store %v, %p atomic release {alignment = 4 : i64} : i32, !llvm.ptr
  llvm.return
}

// -----

llvm.func @number(%p: !llvm.ptr, %v: i32) {
  // expected-error@+1 {{'llvm.store' has the ordering 3, which is none}}
  "llvm.store"(%v, %p) <{ordering = 3 : i64}> : (i32, !llvm.ptr) -> ()
  llvm.return
}

// -----

llvm.func @scope(%p: !llvm.ptr, %v: i32) {
  // expected-error@+1 {{'llvm.store' has a syncscope, but is not atomic}}
  "llvm.store"(%v, %p) <{syncscope = "singlethread"}> : (i32, !llvm.ptr) -> ()
  llvm.return
}

// -----

llvm.func @name(%p: !llvm.ptr) {
  // expected-error@+1 {{unknown atomic ordering 'bogus'; there are not_atomic, unordered}}
  %v = llvm.load %p atomic bogus {alignment = 4 : i64} : !llvm.ptr -> i32
  llvm.return
}

// -----

llvm.func @behind(%p: !llvm.ptr, %v: i64) {
  // expected-error@+1 {{'llvm.atomicrmw' has the operation 99, which is none}}
  %r = "llvm.atomicrmw"(%p, %v) <{bin_op = 99 : i64, ordering = 7 : i64}> : (!llvm.ptr, i64) -> i64
  llvm.return
}

// -----

llvm.func @before(%p: !llvm.ptr, %v: i64) {
  // expected-error@+1 {{'llvm.atomicrmw' has the operation -1, which is none}}
  %r = "llvm.atomicrmw"(%p, %v) <{bin_op = -1 : i64, ordering = 7 : i64}> : (!llvm.ptr, i64) -> i64
  llvm.return
}
