// Calls, random numbers and plumbing.

// RUN: GLOW_UNCHANGED

func.func @identity(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  func.return %arg0 : tensor<2x3xf32>
}

func.func @nothing() {
  func.return
}

func.func @rng(%arg0: tensor<f32>, %arg1: tensor<f32>, %arg2: tensor<2xi64>) {
  %0 = stablehlo.rng %arg0, %arg1, %arg2, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<2x3xf32>
  func.return
}

func.func @rng_bit_generator(%arg0: tensor<2xui64>) {
  %output_state, %output = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  func.return
}

func.func @custom_call(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) {
  %0 = stablehlo.custom_call @foo(%arg0, %arg1) {backend_config = "bar", has_side_effect = true} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

func.func @custom_call_2(%arg0: tensor<2x3xf32>) {
  %0, %1 = stablehlo.custom_call @"foo-x"(%arg0) {api_version = 4 : i32, backend_config = {a = 1 : i64}, called_computations = [@identity], operand_layouts = [dense<[1, 0]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>]} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>)
  func.return
}

func.func @custom_call_3() {
  stablehlo.custom_call @foo() {mhlo.backend = {x = "1"}} : () -> ()
  func.return
}

func.func @custom_call_4(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) {
  %0 = stablehlo.custom_call @foo(%arg0, %arg1) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tuple<tensor<2x3xf32>, tensor<2x3xf32>>
  func.return
}

func.func @composite(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.composite "n.x" %arg0 {composite_attributes = {n = 1 : i32}, decomposition = @identity, version = 2 : i32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

func.func @composite_2() {
  stablehlo.composite "n.x"  {decomposition = @nothing} : () -> ()
  func.return
}

func.func @optimization_barrier(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xi32>) {
  %0, %1 = stablehlo.optimization_barrier %arg0, %arg1 : tensor<2x3xf32>, tensor<2x3xi32>
  func.return
}

func.func @optimization_barrier_2(%arg0: tensor<2x3xf32>) {
  %0 = stablehlo.optimization_barrier %arg0 : tensor<2x3xf32>
  func.return
}

func.func @optimization_barrier_3() {
  stablehlo.optimization_barrier()
  func.return
}

func.func @tuple(%arg0: tensor<2x3xf32>, %arg1: tensor<i32>) {
  %0 = stablehlo.tuple %arg0, %arg1 : tuple<tensor<2x3xf32>, tensor<i32>>
  func.return
}

func.func @tuple_2() {
  %0 = stablehlo.tuple : tuple<>
  func.return
}

func.func @get_tuple_element(%arg0: tuple<tensor<2x3xf32>, tensor<i32>>) {
  %0 = stablehlo.get_tuple_element %arg0[1] : (tuple<tensor<2x3xf32>, tensor<i32>>) -> tensor<i32>
  func.return
}

func.func @after_all(%arg0: !stablehlo.token, %arg1: !stablehlo.token) {
  %0 = stablehlo.after_all %arg0, %arg1 : !stablehlo.token
  func.return
}

func.func @after_all_2() {
  %0 = stablehlo.after_all : !stablehlo.token
  func.return
}

func.func @create_token() {
  %0 = stablehlo.create_token : !stablehlo.token
  func.return
}

func.func @partition_id() {
  %0 = stablehlo.partition_id : tensor<ui32>
  func.return
}

func.func @replica_id() {
  %0 = stablehlo.replica_id : tensor<ui32>
  func.return
}
