// Signatures that contradict themselves or the body.

// RUN: glow-opt %s --split-input-file --verify-diagnostics | filecheck %s

// expected-error@+1 {{the function says that it gives tensor<5xf32>, and returns tensor<4xf32>}}
glow_high.func @results(%x: tensor<4xf32>) -> tensor<5xf32> {
  glow_high.return %x
}

// -----

// expected-error@+1 {{the argument has '@scratch': use @in, @out or @inout}}
glow_low.func @qualifier(@scratch %x: memref<4xf32>) {
}

// -----

glow_high.placeholder @y : tensor<4xf32> {output}
// expected-error@+1 {{a function has names of placeholders or arguments, not both}}
glow_high.func @both(%x: tensor<4xf32>, @y) {
}

// -----

// expected-error@+1 {{a glow_high.func does not hold glow_high.return}}
glow_high.func @behind(%x: tensor<4xf32>) {
  glow_high.return %x
  %0 = glow_high.relu %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{the argument has no qualifier: use @in, @out or @inout}}
glow_low.func @unqualified(%x: memref<4xf32>) {
}

// -----

// expected-error@+1 {{the argument has '@in': use none}}
glow_high.func @qualified(@in %x: tensor<4xf32>) {
}

// -----

// expected-error@+1 {{an argument is a memref here, not tensor<4xf32>}}
glow_low.func @tensors(@in %x: tensor<4xf32>) {
}

// -----

// expected-error@+1 {{an argument is a tensor here, not memref<4xf32>}}
glow_high.func @buffers(%x: memref<4xf32>) {
}

// -----

// expected-error@+1 {{an argument is dense, and in no memory space of its own, unlike memref<4xf32, strided<[2]>>}}
glow_low.func @strided(@in %x: memref<4xf32, strided<[2]>>) {
}

// -----

// expected-error@+1 {{%result is what a result is called: call the argument otherwise}}
glow_high.func @taken(%result: tensor<4xf32>) -> tensor<4xf32> {
  glow_high.return %result
}

// -----

// expected-error@+1 {{a function takes nothing but its bindings}}
"glow_high.func"() <{sym_name = "generic", bindings = []}> ({
^bb0(%x: tensor<4xf32>):
}) : () -> ()

// -----

// What is refused is not printed.
// CHECK-NOT: @behind
// CHECK: glow_high.func @fine(
// CHECK-NOT: @results
glow_high.func @fine(%x: tensor<4xf32>) -> tensor<4xf32> {
  glow_high.return %x
}
