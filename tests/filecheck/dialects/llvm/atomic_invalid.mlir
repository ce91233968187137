// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: llvm.store %v, %p atomic release {alignment = 4 : i64} : i32, !llvm.ptr
llvm.func @fine(%p: !llvm.ptr, %v: i32) {
  llvm.store %v, %p atomic release {alignment = 4 : i64} : i32, !llvm.ptr
  llvm.return
}

// -----

llvm.func @load(%p: !llvm.ptr) {
  // expected-error@+1 {{'llvm.load' cannot have the ordering release}}
  %v = llvm.load %p atomic release {alignment = 4 : i64} : !llvm.ptr -> i32
  llvm.return
}

// -----

llvm.func @store(%p: !llvm.ptr, %v: i32) {
  // expected-error@+1 {{'llvm.store' cannot have the ordering acquire}}
  llvm.store %v, %p atomic acquire {alignment = 4 : i64} : i32, !llvm.ptr
  llvm.return
}

// -----

llvm.func @unaligned(%p: !llvm.ptr, %v: i32) {
  // expected-error@+1 {{'llvm.store' is atomic, and needs an alignment}}
  llvm.store %v, %p atomic release : i32, !llvm.ptr
  llvm.return
}

// -----

llvm.func @scope(%p: !llvm.ptr, %v: i32) {
  // expected-error@+1 {{'llvm.store' has a syncscope, but is not atomic}}
  "llvm.store"(%v, %p) <{syncscope = "singlethread"}> : (i32, !llvm.ptr) -> ()
  llvm.return
}
