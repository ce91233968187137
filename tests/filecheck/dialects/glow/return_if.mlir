// Early returns, printed and parsed back.

// RUN: GLOW_UNCHANGED

llvm.func @status(%ends: i1, %status: i32) -> i32 {
  glow.return_if %ends, %status : i32
  scf.if %ends {
    glow.return_if %ends, %status : i32
  }
  llvm.return %status : i32
}

llvm.func @nothing(%ends: i1) {
  glow.return_if %ends
  llvm.return
}
