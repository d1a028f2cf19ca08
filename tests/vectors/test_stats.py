"""Runs spec/vectors/stats.json: every vector, by the function that it names."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from playhead.core import stats

PATH = Path(__file__).parents[2] / "spec/vectors/stats.json"
VECTORS: list[dict[str, Any]] = json.loads(PATH.read_text())["vectors"]


def rate_interval(i: Any) -> Any:
    methods: tuple[Any, ...] = ("wilson", "clopper_pearson", "jeffreys", "wald")
    return {m: stats.rate_interval(i["passes"], i["n"], i["confidence"], m) for m in methods}


def wald_halfwidth(i: Any) -> Any:
    return {
        "wald_halfwidth_400": [stats.wald_halfwidth(p, i["n"]) for p in i["p"]],
        "wald_halfwidth_50_p88": stats.wald_halfwidth(0.88, 50),
    }


def diff_independent(i: Any) -> Any:
    d = stats.diff_independent(tuple(i["cand"]), tuple(i["base"]))
    return {
        "diff": d.diff,
        "newcombe": d.interval,
        "pooled_z": d.z,
        "pooled_p_two_sided": d.z_p,
        "fisher_exact_p": d.fisher_p,
    }


def paired_binary(i: Any) -> Any:
    r = stats.paired_binary(i["a"], i["b"], i["c"], i["d"])
    return {
        "diff_cand_minus_base": r.diff,
        "exact_p": r.exact_p,
        "mid_p": r.mid_p,
        "chi2_cc": r.chi2,
        "chi2_cc_p": r.chi2_p,
        "one_sided_regression_p": r.one_sided_p,
        "newcombe_paired_m10": r.newcombe,
        "tango_score": r.tango,
    }


def power_paired(i: Any) -> Any:
    return {
        name: {str(n): stats.power_paired(n, b, c, i["alpha"]) for n in (50, 100, 200, 300, 400, 600)}
        for name, (b, c) in i["pb_pc"].items()
    }


def n_paired_connor(i: Any) -> Any:
    return {f"n{power}": [stats.n_paired_connor(b, c, power / 100) for b, c in i["pairs"]] for power in (80, 90)}


def n_noninferiority(i: Any) -> Any:
    return {
        f"n{power}": [stats.n_noninferiority(d, i["margin"], power / 100) for d in i["discordance"]]
        for power in (80, 90)
    }


def pass_k(i: Any) -> Any:
    if "n" in i:
        found = [stats.pass_k([(i["c"], i["n"])], k) for k in i["k"]]
        mixed = {}
    else:
        cases = [(c, 4) for c in i["successes_of_4"]]
        found = [stats.pass_k(cases, k) for k in (1, 2, 3, 4)]
        mixed = {"mixed_cases": sum(0 < c < n for c, n in cases)}
    return {"pass_hat_k": [f.pass_hat for f in found], "pass_at_k": [f.pass_at for f in found], **mixed}


def case_label_probability(i: Any) -> Any:
    found = [stats.case_label_probability(p)._asdict() for p in i["p"]]
    return {name: [f[name] for f in found] for name in found[0]}


def flaky_change(i: Any) -> Any:
    r = stats.flaky_change(i["base_only"], i["cand_only"])
    return {
        "exact_p": r.exact_p,
        "mid_p": r.mid_p,
        "chi2_cc": r.chi2,
        "chi2_cc_p": r.chi2_p,
        "one_sided_more_flaky_p": r.p_more,
    }


def noninferiority(i: Any) -> Any:
    found = {name: stats.noninferiority(*counts, margin=i["margin"]) for name, counts in i["intents"].items()}
    return {
        name: {"diff": r.diff, "lower95_one_sided": r.lower, "non_inferior": r.non_inferior}
        for name, r in found.items()
    }


def curtailment(i: Any) -> Any:
    r = stats.curtailment(i["runs"], i["min_pass_rate"])
    return {
        "max_failures": r.max_failures,
        "stop_fail_at_failure_number": r.fails_at_failure,
        "stop_pass_at_pass_number": r.passes_at_pass,
    }


def label_audit(i: Any) -> Any:
    r = stats.label_audit(i["n"], i["agreements"], i["audited"], i["audit_errors"])
    assert i["reviewed"] == i["n"] - i["agreements"]
    return {
        "estimated_errors_left": r.errors_left,
        "residual_rate_of_400": r.residual_rate,
        "agreement_error_upper95": r.agreement_upper,
        "residual_rate_upper95": r.residual_upper,
    }


def minority_share(i: Any) -> Any:
    found = [stats.minority_share(m, n) for m, n in i["cases"]]
    return {"ci": [f.interval for f in found], "p_vs_half": [f.p_half for f in found]}


def recovery(i: Any) -> Any:
    r = stats.recovery({name: tuple(counts) for name, counts in i["variants"].items()})
    return {
        "wilson": r.kinds,
        "pooled": r.pooled,
        "pooled_wilson": r.pooled_interval,
        "chi2_homogeneity": r.chi2,
        "chi2_p": r.p,
    }


def clustered_rate(i: Any) -> Any:
    r = stats.clustered_rate([(c, 4) for c in i["successes_of_4"]], i["confidence"])
    return {
        "rate": r.rate,
        "naive_wilson": r.naive,
        "cluster_se": r.se,
        "cluster_t": r.t_interval,
        "icc_anova": r.icc,
        "design_effect": r.design_effect,
        "n_effective": r.n_effective,
        "wilson_effective_n": r.interval,
    }


def cluster_bootstrap(i: Any) -> Any:
    return {"ci95": stats.cluster_bootstrap([(c, 4) for c in i["successes_of_4"]], seed=1, confidence=i["confidence"])}


def paired_rates(i: Any) -> Any:
    runs = i["runs"]
    sides = [(max(0, -d), max(0, d)) for d in i["difference_in_passes"]]
    r = stats.paired_rates([(b, runs) for b, _ in sides], [(c, runs) for _, c in sides])
    return {
        "diff": r.diff,
        "cluster_t_95": r.t_interval,
        "t_p_two_sided": r.t_p,
        "signflip_p_drop": r.p_drop,
        "signflip_p_rise": r.p_rise,
        "one_sided_95_bounds": r.bounds,
    }


def literal_false_block(i: Any) -> Any:
    population = [i["p"]] * i["flaky_cases"] + [1.0] * 360
    one, several = stats.literal_false_block(population, 1), stats.literal_false_block(population, i["k"])
    return {
        "rule1_k1": one.rate_rule,
        "rule1_mean_k3": several.rate_rule,
        "rule4_k3": several.flaky_rule,
        "rule1_mean_k3_or_rule4_k3": several.either,
    }


def ambiguity_verdict(i: Any) -> Any:
    return {
        "results": [
            {"ci": stats.minority_share(m, n).interval, "verdict": stats.ambiguity_verdict(m, n)}
            for m, n in i["minority_n"]
        ]
    }


def cochran_q(i: Any) -> Any:
    r = stats.cochran_q(i["matrix"])
    return {
        "q": r.q,
        "df": r.df,
        "p": r.p,
        "pairs_b_c": [list(pair[:4]) for pair in r.pairs],
        "mcnemar_p": [pair.p for pair in r.pairs],
        "holm": [pair.holm for pair in r.pairs],
    }


def paired_bounds(i: Any) -> Any:
    low, high = stats.paired_bounds(i["difference"], int(i["unit"].removeprefix("1/")), i["alpha"])
    return {"lower": low, "upper": high}


def kappa(i: Any) -> Any:
    r = stats.kappa(i["table"])
    return {"po": r.raw, "kappa": r.kappa}


RUN: dict[str, Callable[[Any], Any]] = {
    "rate_interval": rate_interval,
    "wald_halfwidth": wald_halfwidth,
    "zero_event_upper": lambda i: {"upper": [stats.zero_event_upper(n) for n in i["n"]]},
    "zero_event_n": lambda i: {"n": [stats.zero_event_n(r) for r in i["r"]]},
    "all_pass_lower": lambda i: {"lower": [stats.all_pass_lower(n) for n in i["n"]]},
    "diff_independent": diff_independent,
    "power_independent": lambda i: {
        "power": [stats.power_independent(i["p_base"], i["p_cand"], n) for n in i["n_per_run"]]
    },
    "paired_binary": paired_binary,
    "power_paired": power_paired,
    "n_paired_connor": n_paired_connor,
    "n_for_halfwidth": lambda i: {"n": [stats.n_for_halfwidth(i["p"], h) for h in i["halfwidth"]]},
    "pass_k": pass_k,
    "effective_n": lambda i: {"n_effective": [stats.effective_n(i["n"], i["k"], icc) for icc in i["icc"]]},
    "flake_seen_probability": lambda i: {f"k{k}": [stats.flake_seen_probability(p, k) for p in i["p"]] for k in i["k"]},
    "flake_runs_needed": lambda i: {"k": [stats.flake_runs_needed(p) for p in i["p"]]},
    "flaky_change": flaky_change,
    "holm": lambda i: dict(zip(("holm_adj", "holm_reject"), stats.holm(i["p"]), strict=True)),
    "noninferiority": noninferiority,
    "mixture_evalue": lambda i: {"e": [stats.mixture_evalue(*case) for case in i["cases"]]},
    "case_label_probability": case_label_probability,
    "curtailment": curtailment,
    "kappa": kappa,
    "label_audit": label_audit,
    "minority_share": minority_share,
    "recovery": recovery,
    "clustered_rate": clustered_rate,
    "cluster_bootstrap": cluster_bootstrap,
    "paired_rates": paired_rates,
    "literal_false_block": literal_false_block,
    "n_noninferiority": n_noninferiority,
    "ambiguity_verdict": ambiguity_verdict,
    "cochran_q": cochran_q,
    "signflip": lambda i: stats.signflip(i["difference"])._asdict(),
    "paired_bounds": paired_bounds,
}


def check(seen: Any, wanted: Any, tolerance: float, at: str = "") -> None:
    if isinstance(wanted, dict):
        assert isinstance(seen, Mapping), at
        for name, value in wanted.items():
            check(seen[name], value, tolerance, f"{at}/{name}")
    elif isinstance(wanted, list):
        assert len(seen) == len(wanted), at
        for index, value in enumerate(wanted):
            check(seen[index], value, tolerance, f"{at}/{index}")
    elif isinstance(wanted, str | bool):
        assert seen == wanted, at
    else:
        assert seen == pytest.approx(wanted, abs=tolerance, rel=1e-9), at


@pytest.mark.parametrize("vector", VECTORS, ids=[v["id"] for v in VECTORS])
def test_vector(vector: dict[str, Any]) -> None:
    check(RUN[vector["fn"]](vector["inputs"]), vector["expected"], vector["abs_tol"])


def test_t01_the_statistics_need_nothing_that_is_not_installed_with_playhead() -> None:
    script = (
        "import sys\nfor name in ('numpy', 'scipy', 'statsmodels'): sys.modules[name] = None\n"
        "from playhead.core import stats\nprint(stats.rate_interval(352, 400).low)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.startswith("0.8444860470597"), done.stderr
