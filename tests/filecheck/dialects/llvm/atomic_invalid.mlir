// RUN: glow-opt %s --split-input-file --verify-diagnostics
// RUN: not glow-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK-COUNT-4: error: llvm.{{load|store}}
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
