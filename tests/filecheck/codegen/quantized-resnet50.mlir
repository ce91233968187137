// ResNet-50, with a quarter of the channels: between the quantization of its input and the dequantization of its sums it
// computes on codes.

// RUN: glow-opt %s --target=avx512 --stop-after=allocated --verify-each 0 | filecheck %s
// RUN: glow-opt %s --target=avx512,requantization=integer --stop-after=allocated --verify-each 0 | filecheck %s --check-prefix=INTEGER

// No buffer has floats.

// CHECK-LABEL: glow_low.func @main(
// CHECK:         glow_low.stack @out %{{[0-9]+}}, @in %x
// CHECK-NOT:     glow_low.alloc {{.*}}xf32>
// CHECK:         glow_low.matmul

// With integer requantization, no operation has floats either.

// INTEGER-LABEL: glow_low.func @main(
// INTEGER:         glow_low.stack @out %{{[0-9]+}}, @in %x
// INTEGER:         arith.fptoui {{.*}} to i8
// INTEGER-NOT:     {{: f32|to f32|xf32>}}
// INTEGER:         glow_low.matmul
// INTEGER:         arith.sitofp

glow_high.constant @w16x7x3 : tensor<16x7x7x3xi8> {value = dense<2> : tensor<16x7x7x3xi8>}
glow_high.constant @s16 : tensor<16x1x1x1xf32> {value = dense<0.01> : tensor<16x1x1x1xf32>}
glow_high.constant @b16 : tensor<16xf32> {value = dense<0.5> : tensor<16xf32>}
glow_high.constant @w16x1x16 : tensor<16x1x1x16xi8> {value = dense<3> : tensor<16x1x1x16xi8>}
glow_high.constant @w16x3x16 : tensor<16x3x3x16xi8> {value = dense<2> : tensor<16x3x3x16xi8>}
glow_high.constant @w64x1x16 : tensor<64x1x1x16xi8> {value = dense<1> : tensor<64x1x1x16xi8>}
glow_high.constant @s64 : tensor<64x1x1x1xf32> {value = dense<0.01> : tensor<64x1x1x1xf32>}
glow_high.constant @b64 : tensor<64xf32> {value = dense<0.5> : tensor<64xf32>}
glow_high.constant @w16x1x64 : tensor<16x1x1x64xi8> {value = dense<3> : tensor<16x1x1x64xi8>}
glow_high.constant @w32x1x64 : tensor<32x1x1x64xi8> {value = dense<3> : tensor<32x1x1x64xi8>}
glow_high.constant @s32 : tensor<32x1x1x1xf32> {value = dense<0.01> : tensor<32x1x1x1xf32>}
glow_high.constant @b32 : tensor<32xf32> {value = dense<0.5> : tensor<32xf32>}
glow_high.constant @w32x3x32 : tensor<32x3x3x32xi8> {value = dense<3> : tensor<32x3x3x32xi8>}
glow_high.constant @w128x1x32 : tensor<128x1x1x32xi8> {value = dense<3> : tensor<128x1x1x32xi8>}
glow_high.constant @s128 : tensor<128x1x1x1xf32> {value = dense<0.01> : tensor<128x1x1x1xf32>}
glow_high.constant @b128 : tensor<128xf32> {value = dense<0.5> : tensor<128xf32>}
glow_high.constant @w128x1x64 : tensor<128x1x1x64xi8> {value = dense<2> : tensor<128x1x1x64xi8>}
glow_high.constant @w32x1x128 : tensor<32x1x1x128xi8> {value = dense<1> : tensor<32x1x1x128xi8>}
glow_high.constant @w64x1x128 : tensor<64x1x1x128xi8> {value = dense<2> : tensor<64x1x1x128xi8>}
glow_high.constant @w64x3x64 : tensor<64x3x3x64xi8> {value = dense<3> : tensor<64x3x3x64xi8>}
glow_high.constant @w256x1x64 : tensor<256x1x1x64xi8> {value = dense<1> : tensor<256x1x1x64xi8>}
glow_high.constant @s256 : tensor<256x1x1x1xf32> {value = dense<0.01> : tensor<256x1x1x1xf32>}
glow_high.constant @b256 : tensor<256xf32> {value = dense<0.5> : tensor<256xf32>}
glow_high.constant @w256x1x128 : tensor<256x1x1x128xi8> {value = dense<2> : tensor<256x1x1x128xi8>}
glow_high.constant @w64x1x256 : tensor<64x1x1x256xi8> {value = dense<1> : tensor<64x1x1x256xi8>}
glow_high.constant @w128x1x256 : tensor<128x1x1x256xi8> {value = dense<2> : tensor<128x1x1x256xi8>}
glow_high.constant @w128x3x128 : tensor<128x3x3x128xi8> {value = dense<2> : tensor<128x3x3x128xi8>}
glow_high.constant @w512x1x128 : tensor<512x1x1x128xi8> {value = dense<3> : tensor<512x1x1x128xi8>}
glow_high.constant @s512 : tensor<512x1x1x1xf32> {value = dense<0.01> : tensor<512x1x1x1xf32>}
glow_high.constant @b512 : tensor<512xf32> {value = dense<0.5> : tensor<512xf32>}
glow_high.constant @w512x1x256 : tensor<512x1x1x256xi8> {value = dense<2> : tensor<512x1x1x256xi8>}
glow_high.constant @w128x1x512 : tensor<128x1x1x512xi8> {value = dense<3> : tensor<128x1x1x512xi8>}
glow_high.constant @w : tensor<512x1000xi8> {value = dense<1> : tensor<512x1000xi8>}
glow_high.constant @s : tensor<1x1000xf32> {value = dense<0.01> : tensor<1x1000xf32>}
glow_high.constant @b : tensor<1000xf32> {value = dense<0.5> : tensor<1000xf32>}
glow_high.func @main(%x: tensor<1x224x224x3xf32>) -> tensor<1x1000xf32> {
  %0 = glow_high.quantize %x {to = !quant.uniform<u8:f32, 0.02:128>} : tensor<1x224x224x3x!quant.uniform<u8:f32, 0.02:128>>
  %1 = glow_high.dequantize %0 : tensor<1x224x224x3xf32>
  %w16x7x3 = glow_high.get @w16x7x3 : tensor<16x7x7x3xi8>
  %s16 = glow_high.get @s16 : tensor<16x1x1x1xf32>
  %b16 = glow_high.get @b16 : tensor<16xf32>
  %2 = glow_high.dequantize %w16x7x3, %s16 : tensor<16x7x7x3xf32>
  %3 = glow_high.conv %1, %2, %b16 {strides = [2, 2], pads = [3, 3, 3, 3]} : tensor<1x112x112x16xf32>
  %4 = glow_high.relu %3 : tensor<1x112x112x16xf32>
  %5 = glow_high.quantize %4 {to = !quant.uniform<u8:f32, 0.03>} : tensor<1x112x112x16x!quant.uniform<u8:f32, 0.03>>
  %6 = glow_high.dequantize %5 : tensor<1x112x112x16xf32>
  %7 = glow_high.max_pool %6 {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]} : tensor<1x56x56x16xf32>
  %8 = glow_high.quantize %7 {to = !quant.uniform<u8:f32, 0.03>} : tensor<1x56x56x16x!quant.uniform<u8:f32, 0.03>>
  %9 = glow_high.dequantize %8 : tensor<1x56x56x16xf32>
  %w16x1x16 = glow_high.get @w16x1x16 : tensor<16x1x1x16xi8>
  %10 = glow_high.dequantize %w16x1x16, %s16 : tensor<16x1x1x16xf32>
  %11 = glow_high.conv %9, %10, %b16 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x56x56x16xf32>
  %12 = glow_high.relu %11 : tensor<1x56x56x16xf32>
  %13 = glow_high.quantize %12 {to = !quant.uniform<u8:f32, 0.04>} : tensor<1x56x56x16x!quant.uniform<u8:f32, 0.04>>
  %14 = glow_high.dequantize %13 : tensor<1x56x56x16xf32>
  %w16x3x16 = glow_high.get @w16x3x16 : tensor<16x3x3x16xi8>
  %15 = glow_high.dequantize %w16x3x16, %s16 : tensor<16x3x3x16xf32>
  %16 = glow_high.conv %14, %15, %b16 {strides = [1, 1], pads = [1, 1, 1, 1]} : tensor<1x56x56x16xf32>
  %17 = glow_high.relu %16 : tensor<1x56x56x16xf32>
  %18 = glow_high.quantize %17 {to = !quant.uniform<u8:f32, 0.05>} : tensor<1x56x56x16x!quant.uniform<u8:f32, 0.05>>
  %19 = glow_high.dequantize %18 : tensor<1x56x56x16xf32>
  %w64x1x16 = glow_high.get @w64x1x16 : tensor<64x1x1x16xi8>
  %s64 = glow_high.get @s64 : tensor<64x1x1x1xf32>
  %b64 = glow_high.get @b64 : tensor<64xf32>
  %20 = glow_high.dequantize %w64x1x16, %s64 : tensor<64x1x1x16xf32>
  %21 = glow_high.conv %19, %20, %b64 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x56x56x64xf32>
  %22 = glow_high.dequantize %w64x1x16, %s64 : tensor<64x1x1x16xf32>
  %23 = glow_high.conv %9, %22, %b64 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x56x56x64xf32>
  %24 = glow_high.quantize %23 {to = !quant.uniform<u8:f32, 0.06:120>} : tensor<1x56x56x64x!quant.uniform<u8:f32, 0.06:120>>
  %25 = glow_high.dequantize %24 : tensor<1x56x56x64xf32>
  %26 = glow_high.add %21, %25 : tensor<1x56x56x64xf32>
  %27 = glow_high.relu %26 : tensor<1x56x56x64xf32>
  %28 = glow_high.quantize %27 {to = !quant.uniform<u8:f32, 0.07>} : tensor<1x56x56x64x!quant.uniform<u8:f32, 0.07>>
  %29 = glow_high.dequantize %28 : tensor<1x56x56x64xf32>
  %w16x1x64 = glow_high.get @w16x1x64 : tensor<16x1x1x64xi8>
  %30 = glow_high.dequantize %w16x1x64, %s16 : tensor<16x1x1x64xf32>
  %31 = glow_high.conv %29, %30, %b16 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x56x56x16xf32>
  %32 = glow_high.relu %31 : tensor<1x56x56x16xf32>
  %33 = glow_high.quantize %32 {to = !quant.uniform<u8:f32, 0.04>} : tensor<1x56x56x16x!quant.uniform<u8:f32, 0.04>>
  %34 = glow_high.dequantize %33 : tensor<1x56x56x16xf32>
  %35 = glow_high.dequantize %w16x3x16, %s16 : tensor<16x3x3x16xf32>
  %36 = glow_high.conv %34, %35, %b16 {strides = [1, 1], pads = [1, 1, 1, 1]} : tensor<1x56x56x16xf32>
  %37 = glow_high.relu %36 : tensor<1x56x56x16xf32>
  %38 = glow_high.quantize %37 {to = !quant.uniform<u8:f32, 0.05>} : tensor<1x56x56x16x!quant.uniform<u8:f32, 0.05>>
  %39 = glow_high.dequantize %38 : tensor<1x56x56x16xf32>
  %40 = glow_high.dequantize %w64x1x16, %s64 : tensor<64x1x1x16xf32>
  %41 = glow_high.conv %39, %40, %b64 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x56x56x64xf32>
  %42 = glow_high.add %41, %29 : tensor<1x56x56x64xf32>
  %43 = glow_high.relu %42 : tensor<1x56x56x64xf32>
  %44 = glow_high.quantize %43 {to = !quant.uniform<u8:f32, 0.07>} : tensor<1x56x56x64x!quant.uniform<u8:f32, 0.07>>
  %45 = glow_high.dequantize %44 : tensor<1x56x56x64xf32>
  %46 = glow_high.dequantize %w16x1x64, %s16 : tensor<16x1x1x64xf32>
  %47 = glow_high.conv %45, %46, %b16 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x56x56x16xf32>
  %48 = glow_high.relu %47 : tensor<1x56x56x16xf32>
  %49 = glow_high.quantize %48 {to = !quant.uniform<u8:f32, 0.04>} : tensor<1x56x56x16x!quant.uniform<u8:f32, 0.04>>
  %50 = glow_high.dequantize %49 : tensor<1x56x56x16xf32>
  %51 = glow_high.dequantize %w16x3x16, %s16 : tensor<16x3x3x16xf32>
  %52 = glow_high.conv %50, %51, %b16 {strides = [1, 1], pads = [1, 1, 1, 1]} : tensor<1x56x56x16xf32>
  %53 = glow_high.relu %52 : tensor<1x56x56x16xf32>
  %54 = glow_high.quantize %53 {to = !quant.uniform<u8:f32, 0.05>} : tensor<1x56x56x16x!quant.uniform<u8:f32, 0.05>>
  %55 = glow_high.dequantize %54 : tensor<1x56x56x16xf32>
  %56 = glow_high.dequantize %w64x1x16, %s64 : tensor<64x1x1x16xf32>
  %57 = glow_high.conv %55, %56, %b64 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x56x56x64xf32>
  %58 = glow_high.add %57, %45 : tensor<1x56x56x64xf32>
  %59 = glow_high.relu %58 : tensor<1x56x56x64xf32>
  %60 = glow_high.quantize %59 {to = !quant.uniform<u8:f32, 0.07>} : tensor<1x56x56x64x!quant.uniform<u8:f32, 0.07>>
  %61 = glow_high.dequantize %60 : tensor<1x56x56x64xf32>
  %w32x1x64 = glow_high.get @w32x1x64 : tensor<32x1x1x64xi8>
  %s32 = glow_high.get @s32 : tensor<32x1x1x1xf32>
  %b32 = glow_high.get @b32 : tensor<32xf32>
  %62 = glow_high.dequantize %w32x1x64, %s32 : tensor<32x1x1x64xf32>
  %63 = glow_high.conv %61, %62, %b32 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x56x56x32xf32>
  %64 = glow_high.relu %63 : tensor<1x56x56x32xf32>
  %65 = glow_high.quantize %64 {to = !quant.uniform<u8:f32, 0.04>} : tensor<1x56x56x32x!quant.uniform<u8:f32, 0.04>>
  %66 = glow_high.dequantize %65 : tensor<1x56x56x32xf32>
  %w32x3x32 = glow_high.get @w32x3x32 : tensor<32x3x3x32xi8>
  %67 = glow_high.dequantize %w32x3x32, %s32 : tensor<32x3x3x32xf32>
  %68 = glow_high.conv %66, %67, %b32 {strides = [2, 2], pads = [1, 1, 1, 1]} : tensor<1x28x28x32xf32>
  %69 = glow_high.relu %68 : tensor<1x28x28x32xf32>
  %70 = glow_high.quantize %69 {to = !quant.uniform<u8:f32, 0.05>} : tensor<1x28x28x32x!quant.uniform<u8:f32, 0.05>>
  %71 = glow_high.dequantize %70 : tensor<1x28x28x32xf32>
  %w128x1x32 = glow_high.get @w128x1x32 : tensor<128x1x1x32xi8>
  %s128 = glow_high.get @s128 : tensor<128x1x1x1xf32>
  %b128 = glow_high.get @b128 : tensor<128xf32>
  %72 = glow_high.dequantize %w128x1x32, %s128 : tensor<128x1x1x32xf32>
  %73 = glow_high.conv %71, %72, %b128 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x28x28x128xf32>
  %w128x1x64 = glow_high.get @w128x1x64 : tensor<128x1x1x64xi8>
  %74 = glow_high.dequantize %w128x1x64, %s128 : tensor<128x1x1x64xf32>
  %75 = glow_high.conv %61, %74, %b128 {strides = [2, 2], pads = [0, 0, 0, 0]} : tensor<1x28x28x128xf32>
  %76 = glow_high.quantize %75 {to = !quant.uniform<u8:f32, 0.06:120>} : tensor<1x28x28x128x!quant.uniform<u8:f32, 0.06:120>>
  %77 = glow_high.dequantize %76 : tensor<1x28x28x128xf32>
  %78 = glow_high.add %73, %77 : tensor<1x28x28x128xf32>
  %79 = glow_high.relu %78 : tensor<1x28x28x128xf32>
  %80 = glow_high.quantize %79 {to = !quant.uniform<u8:f32, 0.07>} : tensor<1x28x28x128x!quant.uniform<u8:f32, 0.07>>
  %81 = glow_high.dequantize %80 : tensor<1x28x28x128xf32>
  %w32x1x128 = glow_high.get @w32x1x128 : tensor<32x1x1x128xi8>
  %82 = glow_high.dequantize %w32x1x128, %s32 : tensor<32x1x1x128xf32>
  %83 = glow_high.conv %81, %82, %b32 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x28x28x32xf32>
  %84 = glow_high.relu %83 : tensor<1x28x28x32xf32>
  %85 = glow_high.quantize %84 {to = !quant.uniform<u8:f32, 0.04>} : tensor<1x28x28x32x!quant.uniform<u8:f32, 0.04>>
  %86 = glow_high.dequantize %85 : tensor<1x28x28x32xf32>
  %87 = glow_high.dequantize %w32x3x32, %s32 : tensor<32x3x3x32xf32>
  %88 = glow_high.conv %86, %87, %b32 {strides = [1, 1], pads = [1, 1, 1, 1]} : tensor<1x28x28x32xf32>
  %89 = glow_high.relu %88 : tensor<1x28x28x32xf32>
  %90 = glow_high.quantize %89 {to = !quant.uniform<u8:f32, 0.05>} : tensor<1x28x28x32x!quant.uniform<u8:f32, 0.05>>
  %91 = glow_high.dequantize %90 : tensor<1x28x28x32xf32>
  %92 = glow_high.dequantize %w128x1x32, %s128 : tensor<128x1x1x32xf32>
  %93 = glow_high.conv %91, %92, %b128 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x28x28x128xf32>
  %94 = glow_high.add %93, %81 : tensor<1x28x28x128xf32>
  %95 = glow_high.relu %94 : tensor<1x28x28x128xf32>
  %96 = glow_high.quantize %95 {to = !quant.uniform<u8:f32, 0.07>} : tensor<1x28x28x128x!quant.uniform<u8:f32, 0.07>>
  %97 = glow_high.dequantize %96 : tensor<1x28x28x128xf32>
  %98 = glow_high.dequantize %w32x1x128, %s32 : tensor<32x1x1x128xf32>
  %99 = glow_high.conv %97, %98, %b32 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x28x28x32xf32>
  %100 = glow_high.relu %99 : tensor<1x28x28x32xf32>
  %101 = glow_high.quantize %100 {to = !quant.uniform<u8:f32, 0.04>} : tensor<1x28x28x32x!quant.uniform<u8:f32, 0.04>>
  %102 = glow_high.dequantize %101 : tensor<1x28x28x32xf32>
  %103 = glow_high.dequantize %w32x3x32, %s32 : tensor<32x3x3x32xf32>
  %104 = glow_high.conv %102, %103, %b32 {strides = [1, 1], pads = [1, 1, 1, 1]} : tensor<1x28x28x32xf32>
  %105 = glow_high.relu %104 : tensor<1x28x28x32xf32>
  %106 = glow_high.quantize %105 {to = !quant.uniform<u8:f32, 0.05>} : tensor<1x28x28x32x!quant.uniform<u8:f32, 0.05>>
  %107 = glow_high.dequantize %106 : tensor<1x28x28x32xf32>
  %108 = glow_high.dequantize %w128x1x32, %s128 : tensor<128x1x1x32xf32>
  %109 = glow_high.conv %107, %108, %b128 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x28x28x128xf32>
  %110 = glow_high.add %109, %97 : tensor<1x28x28x128xf32>
  %111 = glow_high.relu %110 : tensor<1x28x28x128xf32>
  %112 = glow_high.quantize %111 {to = !quant.uniform<u8:f32, 0.07>} : tensor<1x28x28x128x!quant.uniform<u8:f32, 0.07>>
  %113 = glow_high.dequantize %112 : tensor<1x28x28x128xf32>
  %114 = glow_high.dequantize %w32x1x128, %s32 : tensor<32x1x1x128xf32>
  %115 = glow_high.conv %113, %114, %b32 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x28x28x32xf32>
  %116 = glow_high.relu %115 : tensor<1x28x28x32xf32>
  %117 = glow_high.quantize %116 {to = !quant.uniform<u8:f32, 0.04>} : tensor<1x28x28x32x!quant.uniform<u8:f32, 0.04>>
  %118 = glow_high.dequantize %117 : tensor<1x28x28x32xf32>
  %119 = glow_high.dequantize %w32x3x32, %s32 : tensor<32x3x3x32xf32>
  %120 = glow_high.conv %118, %119, %b32 {strides = [1, 1], pads = [1, 1, 1, 1]} : tensor<1x28x28x32xf32>
  %121 = glow_high.relu %120 : tensor<1x28x28x32xf32>
  %122 = glow_high.quantize %121 {to = !quant.uniform<u8:f32, 0.05>} : tensor<1x28x28x32x!quant.uniform<u8:f32, 0.05>>
  %123 = glow_high.dequantize %122 : tensor<1x28x28x32xf32>
  %124 = glow_high.dequantize %w128x1x32, %s128 : tensor<128x1x1x32xf32>
  %125 = glow_high.conv %123, %124, %b128 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x28x28x128xf32>
  %126 = glow_high.add %125, %113 : tensor<1x28x28x128xf32>
  %127 = glow_high.relu %126 : tensor<1x28x28x128xf32>
  %128 = glow_high.quantize %127 {to = !quant.uniform<u8:f32, 0.07>} : tensor<1x28x28x128x!quant.uniform<u8:f32, 0.07>>
  %129 = glow_high.dequantize %128 : tensor<1x28x28x128xf32>
  %w64x1x128 = glow_high.get @w64x1x128 : tensor<64x1x1x128xi8>
  %130 = glow_high.dequantize %w64x1x128, %s64 : tensor<64x1x1x128xf32>
  %131 = glow_high.conv %129, %130, %b64 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x28x28x64xf32>
  %132 = glow_high.relu %131 : tensor<1x28x28x64xf32>
  %133 = glow_high.quantize %132 {to = !quant.uniform<u8:f32, 0.04>} : tensor<1x28x28x64x!quant.uniform<u8:f32, 0.04>>
  %134 = glow_high.dequantize %133 : tensor<1x28x28x64xf32>
  %w64x3x64 = glow_high.get @w64x3x64 : tensor<64x3x3x64xi8>
  %135 = glow_high.dequantize %w64x3x64, %s64 : tensor<64x3x3x64xf32>
  %136 = glow_high.conv %134, %135, %b64 {strides = [2, 2], pads = [1, 1, 1, 1]} : tensor<1x14x14x64xf32>
  %137 = glow_high.relu %136 : tensor<1x14x14x64xf32>
  %138 = glow_high.quantize %137 {to = !quant.uniform<u8:f32, 0.05>} : tensor<1x14x14x64x!quant.uniform<u8:f32, 0.05>>
  %139 = glow_high.dequantize %138 : tensor<1x14x14x64xf32>
  %w256x1x64 = glow_high.get @w256x1x64 : tensor<256x1x1x64xi8>
  %s256 = glow_high.get @s256 : tensor<256x1x1x1xf32>
  %b256 = glow_high.get @b256 : tensor<256xf32>
  %140 = glow_high.dequantize %w256x1x64, %s256 : tensor<256x1x1x64xf32>
  %141 = glow_high.conv %139, %140, %b256 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x14x14x256xf32>
  %w256x1x128 = glow_high.get @w256x1x128 : tensor<256x1x1x128xi8>
  %142 = glow_high.dequantize %w256x1x128, %s256 : tensor<256x1x1x128xf32>
  %143 = glow_high.conv %129, %142, %b256 {strides = [2, 2], pads = [0, 0, 0, 0]} : tensor<1x14x14x256xf32>
  %144 = glow_high.quantize %143 {to = !quant.uniform<u8:f32, 0.06:120>} : tensor<1x14x14x256x!quant.uniform<u8:f32, 0.06:120>>
  %145 = glow_high.dequantize %144 : tensor<1x14x14x256xf32>
  %146 = glow_high.add %141, %145 : tensor<1x14x14x256xf32>
  %147 = glow_high.relu %146 : tensor<1x14x14x256xf32>
  %148 = glow_high.quantize %147 {to = !quant.uniform<u8:f32, 0.07>} : tensor<1x14x14x256x!quant.uniform<u8:f32, 0.07>>
  %149 = glow_high.dequantize %148 : tensor<1x14x14x256xf32>
  %w64x1x256 = glow_high.get @w64x1x256 : tensor<64x1x1x256xi8>
  %150 = glow_high.dequantize %w64x1x256, %s64 : tensor<64x1x1x256xf32>
  %151 = glow_high.conv %149, %150, %b64 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x14x14x64xf32>
  %152 = glow_high.relu %151 : tensor<1x14x14x64xf32>
  %153 = glow_high.quantize %152 {to = !quant.uniform<u8:f32, 0.04>} : tensor<1x14x14x64x!quant.uniform<u8:f32, 0.04>>
  %154 = glow_high.dequantize %153 : tensor<1x14x14x64xf32>
  %155 = glow_high.dequantize %w64x3x64, %s64 : tensor<64x3x3x64xf32>
  %156 = glow_high.conv %154, %155, %b64 {strides = [1, 1], pads = [1, 1, 1, 1]} : tensor<1x14x14x64xf32>
  %157 = glow_high.relu %156 : tensor<1x14x14x64xf32>
  %158 = glow_high.quantize %157 {to = !quant.uniform<u8:f32, 0.05>} : tensor<1x14x14x64x!quant.uniform<u8:f32, 0.05>>
  %159 = glow_high.dequantize %158 : tensor<1x14x14x64xf32>
  %160 = glow_high.dequantize %w256x1x64, %s256 : tensor<256x1x1x64xf32>
  %161 = glow_high.conv %159, %160, %b256 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x14x14x256xf32>
  %162 = glow_high.add %161, %149 : tensor<1x14x14x256xf32>
  %163 = glow_high.relu %162 : tensor<1x14x14x256xf32>
  %164 = glow_high.quantize %163 {to = !quant.uniform<u8:f32, 0.07>} : tensor<1x14x14x256x!quant.uniform<u8:f32, 0.07>>
  %165 = glow_high.dequantize %164 : tensor<1x14x14x256xf32>
  %166 = glow_high.dequantize %w64x1x256, %s64 : tensor<64x1x1x256xf32>
  %167 = glow_high.conv %165, %166, %b64 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x14x14x64xf32>
  %168 = glow_high.relu %167 : tensor<1x14x14x64xf32>
  %169 = glow_high.quantize %168 {to = !quant.uniform<u8:f32, 0.04>} : tensor<1x14x14x64x!quant.uniform<u8:f32, 0.04>>
  %170 = glow_high.dequantize %169 : tensor<1x14x14x64xf32>
  %171 = glow_high.dequantize %w64x3x64, %s64 : tensor<64x3x3x64xf32>
  %172 = glow_high.conv %170, %171, %b64 {strides = [1, 1], pads = [1, 1, 1, 1]} : tensor<1x14x14x64xf32>
  %173 = glow_high.relu %172 : tensor<1x14x14x64xf32>
  %174 = glow_high.quantize %173 {to = !quant.uniform<u8:f32, 0.05>} : tensor<1x14x14x64x!quant.uniform<u8:f32, 0.05>>
  %175 = glow_high.dequantize %174 : tensor<1x14x14x64xf32>
  %176 = glow_high.dequantize %w256x1x64, %s256 : tensor<256x1x1x64xf32>
  %177 = glow_high.conv %175, %176, %b256 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x14x14x256xf32>
  %178 = glow_high.add %177, %165 : tensor<1x14x14x256xf32>
  %179 = glow_high.relu %178 : tensor<1x14x14x256xf32>
  %180 = glow_high.quantize %179 {to = !quant.uniform<u8:f32, 0.07>} : tensor<1x14x14x256x!quant.uniform<u8:f32, 0.07>>
  %181 = glow_high.dequantize %180 : tensor<1x14x14x256xf32>
  %182 = glow_high.dequantize %w64x1x256, %s64 : tensor<64x1x1x256xf32>
  %183 = glow_high.conv %181, %182, %b64 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x14x14x64xf32>
  %184 = glow_high.relu %183 : tensor<1x14x14x64xf32>
  %185 = glow_high.quantize %184 {to = !quant.uniform<u8:f32, 0.04>} : tensor<1x14x14x64x!quant.uniform<u8:f32, 0.04>>
  %186 = glow_high.dequantize %185 : tensor<1x14x14x64xf32>
  %187 = glow_high.dequantize %w64x3x64, %s64 : tensor<64x3x3x64xf32>
  %188 = glow_high.conv %186, %187, %b64 {strides = [1, 1], pads = [1, 1, 1, 1]} : tensor<1x14x14x64xf32>
  %189 = glow_high.relu %188 : tensor<1x14x14x64xf32>
  %190 = glow_high.quantize %189 {to = !quant.uniform<u8:f32, 0.05>} : tensor<1x14x14x64x!quant.uniform<u8:f32, 0.05>>
  %191 = glow_high.dequantize %190 : tensor<1x14x14x64xf32>
  %192 = glow_high.dequantize %w256x1x64, %s256 : tensor<256x1x1x64xf32>
  %193 = glow_high.conv %191, %192, %b256 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x14x14x256xf32>
  %194 = glow_high.add %193, %181 : tensor<1x14x14x256xf32>
  %195 = glow_high.relu %194 : tensor<1x14x14x256xf32>
  %196 = glow_high.quantize %195 {to = !quant.uniform<u8:f32, 0.07>} : tensor<1x14x14x256x!quant.uniform<u8:f32, 0.07>>
  %197 = glow_high.dequantize %196 : tensor<1x14x14x256xf32>
  %198 = glow_high.dequantize %w64x1x256, %s64 : tensor<64x1x1x256xf32>
  %199 = glow_high.conv %197, %198, %b64 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x14x14x64xf32>
  %200 = glow_high.relu %199 : tensor<1x14x14x64xf32>
  %201 = glow_high.quantize %200 {to = !quant.uniform<u8:f32, 0.04>} : tensor<1x14x14x64x!quant.uniform<u8:f32, 0.04>>
  %202 = glow_high.dequantize %201 : tensor<1x14x14x64xf32>
  %203 = glow_high.dequantize %w64x3x64, %s64 : tensor<64x3x3x64xf32>
  %204 = glow_high.conv %202, %203, %b64 {strides = [1, 1], pads = [1, 1, 1, 1]} : tensor<1x14x14x64xf32>
  %205 = glow_high.relu %204 : tensor<1x14x14x64xf32>
  %206 = glow_high.quantize %205 {to = !quant.uniform<u8:f32, 0.05>} : tensor<1x14x14x64x!quant.uniform<u8:f32, 0.05>>
  %207 = glow_high.dequantize %206 : tensor<1x14x14x64xf32>
  %208 = glow_high.dequantize %w256x1x64, %s256 : tensor<256x1x1x64xf32>
  %209 = glow_high.conv %207, %208, %b256 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x14x14x256xf32>
  %210 = glow_high.add %209, %197 : tensor<1x14x14x256xf32>
  %211 = glow_high.relu %210 : tensor<1x14x14x256xf32>
  %212 = glow_high.quantize %211 {to = !quant.uniform<u8:f32, 0.07>} : tensor<1x14x14x256x!quant.uniform<u8:f32, 0.07>>
  %213 = glow_high.dequantize %212 : tensor<1x14x14x256xf32>
  %214 = glow_high.dequantize %w64x1x256, %s64 : tensor<64x1x1x256xf32>
  %215 = glow_high.conv %213, %214, %b64 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x14x14x64xf32>
  %216 = glow_high.relu %215 : tensor<1x14x14x64xf32>
  %217 = glow_high.quantize %216 {to = !quant.uniform<u8:f32, 0.04>} : tensor<1x14x14x64x!quant.uniform<u8:f32, 0.04>>
  %218 = glow_high.dequantize %217 : tensor<1x14x14x64xf32>
  %219 = glow_high.dequantize %w64x3x64, %s64 : tensor<64x3x3x64xf32>
  %220 = glow_high.conv %218, %219, %b64 {strides = [1, 1], pads = [1, 1, 1, 1]} : tensor<1x14x14x64xf32>
  %221 = glow_high.relu %220 : tensor<1x14x14x64xf32>
  %222 = glow_high.quantize %221 {to = !quant.uniform<u8:f32, 0.05>} : tensor<1x14x14x64x!quant.uniform<u8:f32, 0.05>>
  %223 = glow_high.dequantize %222 : tensor<1x14x14x64xf32>
  %224 = glow_high.dequantize %w256x1x64, %s256 : tensor<256x1x1x64xf32>
  %225 = glow_high.conv %223, %224, %b256 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x14x14x256xf32>
  %226 = glow_high.add %225, %213 : tensor<1x14x14x256xf32>
  %227 = glow_high.relu %226 : tensor<1x14x14x256xf32>
  %228 = glow_high.quantize %227 {to = !quant.uniform<u8:f32, 0.07>} : tensor<1x14x14x256x!quant.uniform<u8:f32, 0.07>>
  %229 = glow_high.dequantize %228 : tensor<1x14x14x256xf32>
  %w128x1x256 = glow_high.get @w128x1x256 : tensor<128x1x1x256xi8>
  %230 = glow_high.dequantize %w128x1x256, %s128 : tensor<128x1x1x256xf32>
  %231 = glow_high.conv %229, %230, %b128 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x14x14x128xf32>
  %232 = glow_high.relu %231 : tensor<1x14x14x128xf32>
  %233 = glow_high.quantize %232 {to = !quant.uniform<u8:f32, 0.04>} : tensor<1x14x14x128x!quant.uniform<u8:f32, 0.04>>
  %234 = glow_high.dequantize %233 : tensor<1x14x14x128xf32>
  %w128x3x128 = glow_high.get @w128x3x128 : tensor<128x3x3x128xi8>
  %235 = glow_high.dequantize %w128x3x128, %s128 : tensor<128x3x3x128xf32>
  %236 = glow_high.conv %234, %235, %b128 {strides = [2, 2], pads = [1, 1, 1, 1]} : tensor<1x7x7x128xf32>
  %237 = glow_high.relu %236 : tensor<1x7x7x128xf32>
  %238 = glow_high.quantize %237 {to = !quant.uniform<u8:f32, 0.05>} : tensor<1x7x7x128x!quant.uniform<u8:f32, 0.05>>
  %239 = glow_high.dequantize %238 : tensor<1x7x7x128xf32>
  %w512x1x128 = glow_high.get @w512x1x128 : tensor<512x1x1x128xi8>
  %s512 = glow_high.get @s512 : tensor<512x1x1x1xf32>
  %b512 = glow_high.get @b512 : tensor<512xf32>
  %240 = glow_high.dequantize %w512x1x128, %s512 : tensor<512x1x1x128xf32>
  %241 = glow_high.conv %239, %240, %b512 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x7x7x512xf32>
  %w512x1x256 = glow_high.get @w512x1x256 : tensor<512x1x1x256xi8>
  %242 = glow_high.dequantize %w512x1x256, %s512 : tensor<512x1x1x256xf32>
  %243 = glow_high.conv %229, %242, %b512 {strides = [2, 2], pads = [0, 0, 0, 0]} : tensor<1x7x7x512xf32>
  %244 = glow_high.quantize %243 {to = !quant.uniform<u8:f32, 0.06:120>} : tensor<1x7x7x512x!quant.uniform<u8:f32, 0.06:120>>
  %245 = glow_high.dequantize %244 : tensor<1x7x7x512xf32>
  %246 = glow_high.add %241, %245 : tensor<1x7x7x512xf32>
  %247 = glow_high.relu %246 : tensor<1x7x7x512xf32>
  %248 = glow_high.quantize %247 {to = !quant.uniform<u8:f32, 0.07>} : tensor<1x7x7x512x!quant.uniform<u8:f32, 0.07>>
  %249 = glow_high.dequantize %248 : tensor<1x7x7x512xf32>
  %w128x1x512 = glow_high.get @w128x1x512 : tensor<128x1x1x512xi8>
  %250 = glow_high.dequantize %w128x1x512, %s128 : tensor<128x1x1x512xf32>
  %251 = glow_high.conv %249, %250, %b128 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x7x7x128xf32>
  %252 = glow_high.relu %251 : tensor<1x7x7x128xf32>
  %253 = glow_high.quantize %252 {to = !quant.uniform<u8:f32, 0.04>} : tensor<1x7x7x128x!quant.uniform<u8:f32, 0.04>>
  %254 = glow_high.dequantize %253 : tensor<1x7x7x128xf32>
  %255 = glow_high.dequantize %w128x3x128, %s128 : tensor<128x3x3x128xf32>
  %256 = glow_high.conv %254, %255, %b128 {strides = [1, 1], pads = [1, 1, 1, 1]} : tensor<1x7x7x128xf32>
  %257 = glow_high.relu %256 : tensor<1x7x7x128xf32>
  %258 = glow_high.quantize %257 {to = !quant.uniform<u8:f32, 0.05>} : tensor<1x7x7x128x!quant.uniform<u8:f32, 0.05>>
  %259 = glow_high.dequantize %258 : tensor<1x7x7x128xf32>
  %260 = glow_high.dequantize %w512x1x128, %s512 : tensor<512x1x1x128xf32>
  %261 = glow_high.conv %259, %260, %b512 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x7x7x512xf32>
  %262 = glow_high.add %261, %249 : tensor<1x7x7x512xf32>
  %263 = glow_high.relu %262 : tensor<1x7x7x512xf32>
  %264 = glow_high.quantize %263 {to = !quant.uniform<u8:f32, 0.07>} : tensor<1x7x7x512x!quant.uniform<u8:f32, 0.07>>
  %265 = glow_high.dequantize %264 : tensor<1x7x7x512xf32>
  %266 = glow_high.dequantize %w128x1x512, %s128 : tensor<128x1x1x512xf32>
  %267 = glow_high.conv %265, %266, %b128 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x7x7x128xf32>
  %268 = glow_high.relu %267 : tensor<1x7x7x128xf32>
  %269 = glow_high.quantize %268 {to = !quant.uniform<u8:f32, 0.04>} : tensor<1x7x7x128x!quant.uniform<u8:f32, 0.04>>
  %270 = glow_high.dequantize %269 : tensor<1x7x7x128xf32>
  %271 = glow_high.dequantize %w128x3x128, %s128 : tensor<128x3x3x128xf32>
  %272 = glow_high.conv %270, %271, %b128 {strides = [1, 1], pads = [1, 1, 1, 1]} : tensor<1x7x7x128xf32>
  %273 = glow_high.relu %272 : tensor<1x7x7x128xf32>
  %274 = glow_high.quantize %273 {to = !quant.uniform<u8:f32, 0.05>} : tensor<1x7x7x128x!quant.uniform<u8:f32, 0.05>>
  %275 = glow_high.dequantize %274 : tensor<1x7x7x128xf32>
  %276 = glow_high.dequantize %w512x1x128, %s512 : tensor<512x1x1x128xf32>
  %277 = glow_high.conv %275, %276, %b512 {strides = [1, 1], pads = [0, 0, 0, 0]} : tensor<1x7x7x512xf32>
  %278 = glow_high.add %277, %265 : tensor<1x7x7x512xf32>
  %279 = glow_high.relu %278 : tensor<1x7x7x512xf32>
  %280 = glow_high.quantize %279 {to = !quant.uniform<u8:f32, 0.07>} : tensor<1x7x7x512x!quant.uniform<u8:f32, 0.07>>
  %281 = glow_high.dequantize %280 : tensor<1x7x7x512xf32>
  %282 = glow_high.reduce_mean %281 {axes = [1, 2], keepdims = true} : tensor<1x1x1x512xf32>
  %283 = glow_high.quantize %282 {to = !quant.uniform<u8:f32, 0.07>} : tensor<1x1x1x512x!quant.uniform<u8:f32, 0.07>>
  %284 = glow_high.dequantize %283 : tensor<1x1x1x512xf32>
  %285 = glow_high.reshape %284 {shape = [1, 512]} : tensor<1x512xf32>
  %w = glow_high.get @w : tensor<512x1000xi8>
  %s = glow_high.get @s : tensor<1x1000xf32>
  %b = glow_high.get @b : tensor<1000xf32>
  %286 = glow_high.dequantize %w, %s : tensor<512x1000xf32>
  %287 = glow_high.matmul %285, %286, %b : tensor<1x1000xf32>
  glow_high.return %287
}
