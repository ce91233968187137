// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: llvm.getelementptr %p[%i, 1, 2] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.struct<(i32, !llvm.array<4 x i8>)>
llvm.func @fine(%p: !llvm.ptr, %i: i64) {
  %q = llvm.getelementptr %p[%i, 1, 2] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.struct<(i32, !llvm.array<4 x i8>)>
  llvm.return
}

// -----

llvm.func @scalar(%p: !llvm.ptr) {
  // expected-error@+1 {{GEP index #1: cannot index into i32}}
  %q = llvm.getelementptr %p[1, 2] : (!llvm.ptr) -> !llvm.ptr, i32
  llvm.return
}

// -----

llvm.func @variable(%p: !llvm.ptr, %i: i32) {
  // expected-error@+1 {{GEP index #1: struct indices must be constants}}
  %q = llvm.getelementptr %p[0, %i] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.struct<(i32, i32)>
  llvm.return
}

// -----

llvm.func @outside(%p: !llvm.ptr) {
  // expected-error@+1 {{GEP index #1: 5 is out of range for struct with 2 field(s)}}
  %q = llvm.getelementptr %p[0, 5] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(i32, i32)>
  llvm.return
}
