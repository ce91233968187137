// Products by the tile registers of AMX: selected where they pay, configured around all loops, and computed in a function
// that other instructions share.

// RUN: glow-opt %s --stop-after allocated --target amx | filecheck %s --check-prefix=SELECTED
// RUN: glow-opt %s --stop-after allocated --target avx512 | filecheck %s --check-prefix=VECTORS
// RUN: glow-opt %s --stop-after llvm --target amx | filecheck %s
// RUN: glow-opt %s --stop-after llvm --target amx | glow-opt | filecheck %s

// SELECTED-LABEL: @main
// SELECTED: glow_low.matmul {{.*}}kernel = "matmul", tiles = {rows = 64, prefetch = 0, tile_products = 1}
// A row is not worth a configuration of registers.
// SELECTED: glow_low.matmul {{.*}}kernel = "matmul-streamed"}

// VECTORS-NOT: tile_products

// CHECK-LABEL: llvm.func internal @tiles.tdpbusd.2x2
// CHECK: llvm.call_intrinsic "llvm.x86.tilezero"(%{{.*}}) : (i8) -> ()
// CHECK-COUNT-3: llvm.call_intrinsic "llvm.x86.tileloadd64"(%{{.*}}, %{{.*}}, %{{.*}}) : (i8, !llvm.ptr, i64) -> ()
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.tdpbusd"(%{{.*}}, %{{.*}}, %{{.*}}) : (i8, i8, i8) -> ()
// CHECK: llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.tdpbusd"
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.tilestored64"
// CHECK-LABEL: llvm.func internal @matmul.64x64
// CHECK: llvm.call_intrinsic "llvm.x86.ldtilecfg"(%{{.*}}) : (!llvm.ptr) -> ()
// CHECK: llvm.call @tiles.tdpbusd.2x2
// CHECK: llvm.call_intrinsic "llvm.x86.tilerelease"() : () -> ()
// CHECK-LABEL: llvm.func internal @matmul_streamed.1x64
// CHECK-NOT: ldtilecfg
glow_high.func @main(%x: tensor<64x128xui8>, %r: tensor<1x128xui8>, %w: tensor<128x64xi8>) -> (tensor<64x64xi32>, tensor<1x64xi32>) {
  %0 = glow_high.matmul %x, %w, none : tensor<64x64xi32>
  %1 = glow_high.matmul %r, %w, none : tensor<1x64xi32>
  glow_high.return %0, %1
}
