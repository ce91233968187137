// Operations with regions.

// RUN: GLOW_UNCHANGED

func.func @reduce(%arg0: tensor<2x3xf32>, %arg1: tensor<f32>) {
  %0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  func.return
}

func.func @reduce_2(%arg0: tensor<2x3xf32>, %arg1: tensor<f32>) {
  %0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.maximum across dimensions = [0, 1] {q = 1 : i32} : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
  func.return
}

func.func @reduce_3(%arg0: tensor<2x3xf32>, %arg1: tensor<f32>) {
  %0 = stablehlo.reduce(%arg0 init: %arg1) across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
   reducer(%arg2: tensor<f32>, %arg3: tensor<f32>) {
    %1 = stablehlo.add %arg2, %arg3 : tensor<f32>
    %2 = stablehlo.abs %1 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }
  func.return
}

func.func @reduce_4(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xi32>, %arg2: tensor<f32>, %arg3: tensor<i32>) {
  %0, %1 = stablehlo.reduce(%arg0 init: %arg2), (%arg1 init: %arg3) across dimensions = [1] : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
   reducer(%arg4: tensor<f32>, %arg6: tensor<f32>) (%arg5: tensor<i32>, %arg7: tensor<i32>) {
    %2 = stablehlo.add %arg4, %arg6 : tensor<f32>
    %3 = stablehlo.add %arg5, %arg7 : tensor<i32>
    stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
  }
  func.return
}

func.func @reduce_5(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xi32>, %arg2: tensor<f32>, %arg3: tensor<i32>) {
  %0, %1 = stablehlo.reduce(%arg0 init: %arg2), (%arg1 init: %arg3) across dimensions = [1] {k = 2 : i64} : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
   reducer(%arg4: tensor<f32>, %arg6: tensor<f32>) (%arg5: tensor<i32>, %arg7: tensor<i32>) {
    %2 = stablehlo.add %arg4, %arg6 : tensor<f32>
    %3 = stablehlo.add %arg5, %arg7 : tensor<i32>
    stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
  }
  func.return
}

func.func @reduce_window(%arg0: tensor<1x8x8x3xf32>, %arg1: tensor<f32>) {
  %0 = "stablehlo.reduce_window"(%arg0, %arg1) <{padding = dense<0> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %1 = stablehlo.maximum %arg2, %arg3 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<1x8x8x3xf32>, tensor<f32>) -> tensor<1x4x4x3xf32>
  func.return
}

func.func @scatter(%arg0: tensor<4x3xf32>, %arg1: tensor<2x1xi32>, %arg2: tensor<2x3xf32>) {
  %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    %1 = stablehlo.add %arg3, %arg4 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  func.return
}

func.func @select_and_scatter(%arg0: tensor<4x4xf32>, %arg1: tensor<2x2xf32>, %arg2: tensor<f32>) {
  %0 = "stablehlo.select_and_scatter"(%arg0, %arg1, %arg2) <{padding = dense<0> : tensor<2x2xi64>, window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}> ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    %1 = stablehlo.compare GE, %arg3, %arg4 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%arg3_1: tensor<f32>, %arg4_1: tensor<f32>):
    %2 = stablehlo.add %arg3_1, %arg4_1 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<4x4xf32>, tensor<2x2xf32>, tensor<f32>) -> tensor<4x4xf32>
  func.return
}

func.func @sort(%arg0: tensor<2x3xf32>) {
  %0 = "stablehlo.sort"(%arg0) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %1 = stablehlo.compare LT, %arg1, %arg2 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

func.func @map(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) {
  %0 = "stablehlo.map"(%arg0, %arg1) <{dimensions = array<i64: 0, 1>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %1 = stablehlo.multiply %arg2, %arg3 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

func.func @while(%arg0: tensor<i32>, %arg1: tensor<f32>) {
  %0, %1 = stablehlo.while(%iterArg = %arg0, %iterArg_1 = %arg1) : tensor<i32>, tensor<f32>
  cond {
    %2 = stablehlo.compare LT, %iterArg, %iterArg : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    stablehlo.return %iterArg, %iterArg_1 : tensor<i32>, tensor<f32>
  }
  func.return
}

func.func @while_2(%arg0: tensor<i32>, %arg1: tensor<f32>) {
  %0, %1 = stablehlo.while(%iterArg = %arg0, %iterArg_1 = %arg1) : tensor<i32>, tensor<f32> attributes {mhlo.x = "y"}
  cond {
    %2 = stablehlo.compare LT, %iterArg, %iterArg : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    stablehlo.return %iterArg, %iterArg_1 : tensor<i32>, tensor<f32>
  }
  func.return
}

func.func @while_3() {
  stablehlo.while()
  cond {
    %c = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    stablehlo.return
  }
  func.return
}

func.func @if(%arg0: tensor<i1>) {
  %0 = "stablehlo.if"(%arg0) ({
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    stablehlo.return %cst : tensor<f32>
  }, {
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    stablehlo.return %cst_1 : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  func.return
}

func.func @case(%arg0: tensor<i32>) {
  %0 = "stablehlo.case"(%arg0) ({
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    stablehlo.return %cst : tensor<f32>
  }, {
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    stablehlo.return %cst_1 : tensor<f32>
  }, {
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    stablehlo.return %cst_2 : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  func.return
}
