"""Where onnxruntime has its native module, whose names programs import: errors above all."""
