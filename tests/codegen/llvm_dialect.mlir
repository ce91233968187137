// Every operation that glow_mlir.dialects.llvm adds or replaces, in upstream's syntax.
builtin.module {
  llvm.func @values(%i: i32, %j: i32, %f: f32, %p: !llvm.ptr, %v: vector<8xf32>, %w: vector<8xi32>) {
    %0 = llvm.icmp "slt" %i, %j : i32
    %1 = llvm.icmp "ne" %w, %w : vector<8xi32>
    %2 = llvm.icmp "eq" %p, %p : !llvm.ptr
    %3 = llvm.fcmp "olt" %f, %f : f32
    %4 = llvm.fcmp "une" %v, %v {fastmathFlags = #llvm.fastmath<nnan>} : vector<8xf32>
    %5 = llvm.select %0, %i, %j : i1, i32
    %6 = llvm.select %4, %v, %v {fastmathFlags = #llvm.fastmath<nsz>} : vector<8xi1>, vector<8xf32>
    %7 = llvm.select %0, %v, %v : i1, vector<8xf32>
    %8 = llvm.freeze %i : i32
    %9 = llvm.mlir.poison : vector<8xf32>
    %10 = llvm.fptosi %v : vector<8xf32> to vector<8xi32>
    %11 = llvm.fptoui %f : f32 to i8
    %12 = llvm.uitofp %w : vector<8xi32> to vector<8xf32>
    %13 = llvm.uitofp nneg %i : i32 to f64
    %14 = llvm.addrspacecast %p : !llvm.ptr to !llvm.ptr<1>
    %15 = llvm.bitcast %v : vector<8xf32> to vector<8xi32>
    llvm.return
  }
  llvm.func @intrinsics(%i: i32, %f: f32, %v: vector<8xf32>, %w: vector<8xi32>) {
    %0 = llvm.intr.roundeven(%f) : (f32) -> f32
    %1 = llvm.intr.round(%v) : (vector<8xf32>) -> vector<8xf32>
    %2 = llvm.intr.rint(%f) {fastmathFlags = #llvm.fastmath<nnan>} : (f32) -> f32
    %3 = llvm.intr.nearbyint(%f) : (f32) -> f32
    %4 = llvm.intr.trunc(%v) : (vector<8xf32>) -> vector<8xf32>
    %5 = llvm.intr.maximum(%v, %v) : (vector<8xf32>, vector<8xf32>) -> vector<8xf32>
    %6 = llvm.intr.minimum(%f, %f) : (f32, f32) -> f32
    %7 = llvm.intr.fmuladd(%f, %f, %f) : (f32, f32, f32) -> f32
    %8 = llvm.intr.smax(%i, %i) : (i32, i32) -> i32
    %9 = llvm.intr.smin(%w, %w) : (vector<8xi32>, vector<8xi32>) -> vector<8xi32>
    %10 = llvm.intr.umax(%i, %i) : (i32, i32) -> i32
    %11 = llvm.intr.umin(%i, %i) : (i32, i32) -> i32
    %12 = llvm.intr.sadd.sat(%i, %i) : (i32, i32) -> i32
    %13 = llvm.intr.uadd.sat(%i, %i) : (i32, i32) -> i32
    %14 = llvm.intr.ssub.sat(%i, %i) : (i32, i32) -> i32
    %15 = llvm.intr.usub.sat(%w, %w) : (vector<8xi32>, vector<8xi32>) -> vector<8xi32>
    %16 = llvm.intr.ctpop(%w) : (vector<8xi32>) -> vector<8xi32>
    %17 = llvm.intr.bitreverse(%i) : (i32) -> i32
    %18 = llvm.intr.bswap(%i) : (i32) -> i32
    %19 = llvm.intr.fshl(%i, %i, %i) : (i32, i32, i32) -> i32
    %20 = llvm.intr.fshr(%i, %i, %i) : (i32, i32, i32) -> i32
    %21 = "llvm.intr.abs"(%i) <{is_int_min_poison = false}> : (i32) -> i32
    %22 = "llvm.intr.ctlz"(%w) <{is_zero_poison = true}> : (vector<8xi32>) -> vector<8xi32>
    %23 = "llvm.intr.cttz"(%i) <{is_zero_poison = false}> : (i32) -> i32
    %24 = "llvm.call_intrinsic"() <{fastmathFlags = #llvm.fastmath<none>, intrin = "llvm.readcyclecounter", op_bundle_sizes = array<i32>, operandSegmentSizes = array<i32: 0, 0>}> : () -> i64
    llvm.return
  }
  llvm.func @vectors(%n: i64, %s: f32, %v: vector<8xf32>, %w: vector<8xi32>) {
    %0 = llvm.extractelement %v[%n : i64] : vector<8xf32>
    %1 = "llvm.intr.vector.reduce.add"(%w) : (vector<8xi32>) -> i32
    %2 = "llvm.intr.vector.reduce.mul"(%w) : (vector<8xi32>) -> i32
    %3 = "llvm.intr.vector.reduce.and"(%w) : (vector<8xi32>) -> i32
    %4 = "llvm.intr.vector.reduce.or"(%w) : (vector<8xi32>) -> i32
    %5 = "llvm.intr.vector.reduce.xor"(%w) : (vector<8xi32>) -> i32
    %6 = "llvm.intr.vector.reduce.smax"(%w) : (vector<8xi32>) -> i32
    %7 = "llvm.intr.vector.reduce.smin"(%w) : (vector<8xi32>) -> i32
    %8 = "llvm.intr.vector.reduce.umax"(%w) : (vector<8xi32>) -> i32
    %9 = "llvm.intr.vector.reduce.umin"(%w) : (vector<8xi32>) -> i32
    %10 = llvm.intr.vector.reduce.fmax(%v) {fastmathFlags = #llvm.fastmath<nnan>} : (vector<8xf32>) -> f32
    %11 = llvm.intr.vector.reduce.fmin(%v) : (vector<8xf32>) -> f32
    %12 = llvm.intr.vector.reduce.fmaximum(%v) : (vector<8xf32>) -> f32
    %13 = llvm.intr.vector.reduce.fminimum(%v) : (vector<8xf32>) -> f32
    %14 = "llvm.intr.vector.reduce.fadd"(%s, %v) <{fastmathFlags = #llvm.fastmath<reassoc>}> : (f32, vector<8xf32>) -> f32
    llvm.return
  }
  llvm.func @memory(%p: !llvm.ptr, %q: !llvm.ptr, %n: i64, %b: i8, %v: vector<8xf32>, %w: vector<8xi32>, %m: vector<8xi1>) {
    %0 = llvm.getelementptr inbounds %p[%n] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %1 = llvm.getelementptr inbounds|nuw %p[%n, 2] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<4 x f32>
    %2 = llvm.getelementptr %p[3] : (!llvm.ptr) -> !llvm.ptr, i8
    %3 = llvm.getelementptr inbounds %p[%w] : (!llvm.ptr, vector<8xi32>) -> vector<8x!llvm.ptr>, f32
    %4 = llvm.load %p {alignment = 4 : i64} : !llvm.ptr -> vector<8xf32>
    %5 = llvm.load volatile %p : !llvm.ptr -> i32
    %6 = llvm.load %p atomic syncscope("singlethread") acquire {alignment = 8 : i64} : !llvm.ptr -> i64
    %7 = llvm.load %p invariant {alignment = 4 : i64, nontemporal} : !llvm.ptr -> f32
    llvm.store %v, %p {alignment = 4 : i64, nontemporal} : vector<8xf32>, !llvm.ptr
    llvm.store volatile %n, %p : i64, !llvm.ptr
    llvm.store %n, %p atomic release {alignment = 8 : i64} : i64, !llvm.ptr
    %8 = llvm.intr.masked.load %p, %m, %v {alignment = 4 : i32} : (!llvm.ptr, vector<8xi1>, vector<8xf32>) -> vector<8xf32>
    %9 = llvm.intr.masked.load %p, %m {alignment = 4 : i32} : (!llvm.ptr, vector<8xi1>) -> vector<8xi32>
    llvm.intr.masked.store %w, %p, %m {alignment = 4 : i32} : vector<8xi32>, vector<8xi1> into !llvm.ptr
    %10 = llvm.intr.masked.gather %3, %m, %v {alignment = 4 : i32} : (vector<8x!llvm.ptr>, vector<8xi1>, vector<8xf32>) -> vector<8xf32>
    llvm.intr.masked.scatter %v, %3, %m {alignment = 4 : i32} : vector<8xf32>, vector<8xi1> into vector<8x!llvm.ptr>
    "llvm.intr.prefetch"(%p) <{cache = 1 : i32, hint = 2 : i32, rw = 0 : i32}> : (!llvm.ptr) -> ()
    "llvm.intr.memcpy"(%p, %q, %n) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
    "llvm.intr.memcpy.inline"(%p, %q) <{isVolatile = false, len = 64 : i64}> : (!llvm.ptr, !llvm.ptr) -> ()
    "llvm.intr.memset"(%p, %b, %n) <{isVolatile = false}> : (!llvm.ptr, i8, i64) -> ()
    "llvm.intr.memset.inline"(%p, %b) <{isVolatile = false, len = 64 : i64}> : (!llvm.ptr, i8) -> ()
    llvm.return
  }
  llvm.func @atomics(%p: !llvm.ptr, %n: i64, %f: f32) {
    %0 = llvm.atomicrmw add %p, %n seq_cst : !llvm.ptr, i64
    %1 = llvm.atomicrmw volatile fadd %p, %f syncscope("agent") monotonic {alignment = 4 : i64} : !llvm.ptr, f32
    %2 = llvm.atomicrmw _or %p, %n acq_rel : !llvm.ptr, i64
    %3 = llvm.cmpxchg %p, %n, %n acq_rel monotonic : !llvm.ptr, i64
    %4 = llvm.cmpxchg weak volatile %p, %n, %n syncscope("agent") seq_cst acquire {alignment = 8 : i64} : !llvm.ptr, i64
    llvm.fence acq_rel
    llvm.fence syncscope("singlethread") seq_cst
    llvm.return
  }
}
