"""Features of images by an ONNX network, in the layout that the loaders and ``reproduce`` read."""

from topksvm.extraction._extraction import SPLITS as SPLITS, extract_features as extract_features
from topksvm.extraction._network import Network as Network, Preparation as Preparation
