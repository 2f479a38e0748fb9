# SPDX-License-Identifier: Apache-2.0
"""Models of scikit-learn, XGBoost and LightGBM, trained on data that scikit-learn brings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import onnxmltools
import xgboost
from onnxmltools.convert.common.data_types import FloatTensorType
from skl2onnx import to_onnx
from sklearn import ensemble, gaussian_process, neighbors, neural_network, preprocessing, svm
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.pipeline import make_pipeline

from backend_test.real_models.make.saving import save


def make(root: Path) -> None:
    x, y = load_breast_cancer(return_X_y=True)
    x = x.astype(np.float32)
    r, target = load_diabetes(return_X_y=True)
    r = r.astype(np.float32)
    scaled = preprocessing.StandardScaler
    classifiers: dict[str, Any] = {
        "gradient-boosting": ensemble.GradientBoostingClassifier(n_estimators=30, random_state=0),
        "svc": make_pipeline(scaled(), svm.SVC(probability=False, random_state=0)),
        "mlp": make_pipeline(scaled(), neural_network.MLPClassifier((32, 16), max_iter=60, random_state=0)),
        "k-nearest": make_pipeline(scaled(), neighbors.KNeighborsClassifier(3)),
    }
    for name, model in classifiers.items():
        model.fit(x[::3], y[::3])
        save(root, f"sklearn-{name}", to_onnx(model, x[:1], options={"zipmap": False}), {"X": x[:20]})
    regressors: dict[str, Any] = {
        "gaussian-process": gaussian_process.GaussianProcessRegressor(random_state=0),
        "extra-trees": ensemble.ExtraTreesRegressor(20, max_depth=6, random_state=0),
    }
    for name, model in regressors.items():
        model.fit(r[::4], target[::4])
        save(root, f"sklearn-{name}", to_onnx(model, r[:1], target_opset=18), {"X": r[:20]})
    save(root, "sklearn-k-means", to_onnx(KMeans(4, n_init=2, random_state=0).fit(r), r[:1]), {"X": r[:20]})
    forest = ensemble.IsolationForest(n_estimators=20, random_state=0).fit(r)
    save(
        root, "sklearn-isolation-forest", to_onnx(forest, r[:1], target_opset={"": 18, "ai.onnx.ml": 3}), {"X": r[:20]}
    )
    types = [("X", FloatTensorType([None, x.shape[1]]))]
    boosted = xgboost.XGBClassifier(n_estimators=20, max_depth=4, random_state=0).fit(x, y)
    save(root, "xgboost-classifier", onnxmltools.convert_xgboost(boosted, initial_types=types), {"X": x[:20]})
    types = [("X", FloatTensorType([None, r.shape[1]]))]
    boosted = xgboost.XGBRegressor(n_estimators=20, max_depth=4, random_state=0).fit(r, target)
    save(root, "xgboost-regressor", onnxmltools.convert_xgboost(boosted, initial_types=types), {"X": r[:20]})
    light = lightgbm.LGBMRegressor(n_estimators=20, num_leaves=15, random_state=0, verbose=-1).fit(r, target)
    save(root, "lightgbm-regressor", onnxmltools.convert_lightgbm(light, initial_types=types), {"X": r[:20]})
