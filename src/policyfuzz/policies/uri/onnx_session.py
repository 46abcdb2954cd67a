"""A session of onnxruntime that other processes can have as well."""

from typing import Any

from policyfuzz import extras


class Session:
    """Runs a network, and is pickled as the bytes of that; gives the same bits in every run."""

    def __init__(self, content: bytes) -> None:
        """`content` is a whole network in the format of ONNX."""
        runtime = extras.load("onnxruntime", "onnx")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.execution_mode = runtime.ExecutionMode.ORT_SEQUENTIAL
        options.use_deterministic_compute = True
        options.log_severity_level = 4  # what goes wrong is raised as well
        self._content = content
        self._session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def __reduce__(self) -> Any:
        return Session, (self._content,)

    def get_inputs(self) -> list[Any]:
        """Ports, as onnxruntime describes them."""
        return list(self._session.get_inputs())

    def get_outputs(self) -> list[Any]:
        """Ports, as onnxruntime describes them."""
        return list(self._session.get_outputs())

    def run(self, outputs: list[str], feed: dict[str, Any]) -> list[Any]:
        """The values of `outputs` where inputs are as in `feed`."""
        return list(self._session.run(outputs, feed))
