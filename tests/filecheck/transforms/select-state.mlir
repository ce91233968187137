// State that a function leaves as it is, it reads in panels, which another function packs.

// RUN: glow-opt %s -p 'assign-target{target=avx2},select,remove-unused-storage,verify-selected' | filecheck %s

// CHECK: glow_high.placeholder @w : tensor<8x20xf32> {state}
// CHECK: glow_high.placeholder @w.panels_16_8x20 : tensor<2x8x16xf32> {packed_by = @pack_w_panels_16_8x20}
// CHECK: glow_high.placeholder @f.filters_16_1_8x3x3x4 : tensor<1x1x36x16xf32> {packed_by = @pack_f_filters_16_1_8x3x3x4}
glow_high.placeholder @x : tensor<4x8xf32> {input}
glow_high.placeholder @image : tensor<1x5x5x4xf32> {input}
glow_high.placeholder @w : tensor<8x20xf32> {state}
glow_high.placeholder @f : tensor<8x3x3x4xf32> {state}
glow_high.placeholder @y : tensor<4x20xf32> {output}
glow_high.placeholder @features : tensor<1x3x3x8xf32> {output}

// CHECK-LABEL: glow_low.func @run(@x, @image, @w, @f, @y, @features, @w.panels_16_8x20, @f.filters_16_1_8x3x3x4)
// CHECK-NOT:     glow_low.weight @w {
// CHECK-NOT:     glow_low.alloc
// CHECK:         glow_low.matmul @out %y, @in %x, @in %w {kernel = "matmul"{{.*}}packing = {right = {form = "panels", shape = [8, 20], panel = 16}}
// CHECK:         glow_low.matmul @out %y, @in %x, @in %w {
// CHECK:         glow_low.conv @out %features, @in %image, @in %f {{.*}}packing = {filter = {form = "filters"
glow_low.func @run(@x, @image, @w, @f, @y, @features) {
  %x = glow_low.weight @x : memref<4x8xf32>
  %image = glow_low.weight @image : memref<1x5x5x4xf32>
  %w = glow_low.weight @w {mutable} : memref<8x20xf32>
  %f = glow_low.weight @f {mutable} : memref<8x3x3x4xf32>
  %y = glow_low.weight @y {mutable} : memref<4x20xf32>
  %features = glow_low.weight @features {mutable} : memref<1x3x3x8xf32>
  glow_low.matmul @out %y, @in %x, @in %w
  glow_low.matmul @out %y, @in %x, @in %w
  glow_low.conv @out %features, @in %image, @in %f
}

// What writes the state reads it as it is.

// CHECK-LABEL: glow_low.func @train(@x, @w, @y)
// CHECK:         glow_low.matmul
// CHECK-NOT:     packing
// CHECK:         glow_low.fill
glow_low.func @train(@x, @w, @y) {
  %x = glow_low.weight @x : memref<4x8xf32>
  %w = glow_low.weight @w {mutable} : memref<8x20xf32>
  %y = glow_low.weight @y {mutable} : memref<4x20xf32>
  glow_low.matmul @out %y, @in %x, @in %w
  glow_low.fill @out %w {value = 0.0}
}

// One instruction packs.

// CHECK-LABEL: glow_low.func @pack_w_panels_16_8x20(@w, @w.panels_16_8x20)
// CHECK:         glow_low.pack @out %packed, @in %plain {layout = {form = "panels", shape = [8, 20], panel = 16}, kernel = "pack"}

// CHECK-LABEL: glow_low.func @pack_f_filters_16_1_8x3x3x4(
// CHECK:         glow_low.pack @out %packed, @in %plain {layout = {form = "filters", shape = [8, 3, 3, 4], panel = 16, groups = 1}, kernel = "pack"}
