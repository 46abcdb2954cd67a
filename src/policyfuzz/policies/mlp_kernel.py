"""The compiled forward pass of a bank of equally shaped networks."""

import numpy as np
from numpy.typing import NDArray

from policyfuzz.compiled import kernel

#: Rows per matrix product. BLAS rounds differently for other row counts, so every product has exactly
#: this many rows (the last ones padded): a row's result is then independent of its batch.
BLOCK_ROWS = 64

LINEAR, RELU, TANH = 0, 1, 2


@kernel
def forward(
    parameters: NDArray[np.floating],
    sizes: NDArray[np.int64],
    activations: NDArray[np.int64],
    inputs: NDArray[np.floating],
    which: NDArray[np.int64],
    outputs: NDArray[np.floating],
) -> None:
    """Row i of `inputs` (n, in) through network `which[i]` into row i of `outputs` (n, out).

    `parameters` (networks, p) holds for each network its layers one after another, each a weight
    matrix (in, out) followed by a bias (out,).
    """
    rows_total, networks = inputs.shape[0], parameters.shape[0]
    layers = sizes.shape[0] - 1
    widest = sizes.max()
    zero = parameters.dtype.type(0)
    first = np.zeros(BLOCK_ROWS * widest, parameters.dtype)
    second = np.zeros(BLOCK_ROWS * widest, parameters.dtype)
    rows = np.empty(BLOCK_ROWS, np.int64)
    for network in range(networks):
        flat = parameters[network]
        cursor = 0
        while True:
            filled = 0
            block = first[: BLOCK_ROWS * sizes[0]].reshape(BLOCK_ROWS, sizes[0])
            while cursor < rows_total and filled < BLOCK_ROWS:
                if which[cursor] == network:
                    rows[filled] = cursor
                    for column in range(sizes[0]):
                        block[filled, column] = inputs[cursor, column]
                    filled += 1
                cursor += 1
            if filled == 0:
                break
            source, target = first, second
            offset = 0
            for layer in range(layers):
                n_in, n_out = sizes[layer], sizes[layer + 1]
                weights = flat[offset : offset + n_in * n_out].reshape(n_in, n_out)
                offset += n_in * n_out
                bias = flat[offset : offset + n_out]
                offset += n_out
                result = target[: BLOCK_ROWS * n_out].reshape(BLOCK_ROWS, n_out)
                np.dot(source[: BLOCK_ROWS * n_in].reshape(BLOCK_ROWS, n_in), weights, result)
                if activations[layer] == RELU:
                    for row in range(BLOCK_ROWS):
                        for column in range(n_out):
                            value = result[row, column] + bias[column]
                            # written so that NaN stays NaN
                            result[row, column] = zero if value < zero else value
                elif activations[layer] == TANH:
                    for row in range(BLOCK_ROWS):
                        for column in range(n_out):
                            result[row, column] = np.tanh(result[row, column] + bias[column])
                else:
                    for row in range(BLOCK_ROWS):
                        for column in range(n_out):
                            result[row, column] += bias[column]
                source, target = target, source
            scores = source[: BLOCK_ROWS * sizes[-1]].reshape(BLOCK_ROWS, sizes[-1])
            for row in range(filled):
                for column in range(sizes[-1]):
                    outputs[rows[row], column] = scores[row, column]
