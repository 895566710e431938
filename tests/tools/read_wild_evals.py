#!/usr/bin/env python3
"""Counts the cases, prompts, polarities and checks of eval files, independently of the program.

A small second reader of the forms in which people write evals.json and trigger sets. It shares no code with the
program, so that a difference between the two shows a mistake in one of them.

    read_wild_evals.py FOLDER_OR_FILE...                    prints one JSON object for each file
    read_wild_evals.py --compare PRACTICUM FOLDER...        compares each file with what `practicum convert` reads

Needs Python 3.9; reads YAML files only if PyYAML is installed.
"""

import json
import os
import re
import subprocess
import sys

PROMPTS = ["prompt", "query", "question", "input", "user_request", "user_input", "user_prompt", "user_message",
           "request", "task", "message", "instruction"]
LISTS = {"evals", "cases", "test_cases", "tests", "scenarios", "queries", "expects", "eval_cases"}
LIST_ENDINGS = ("_cases", "_evals", "_tests", "_scenarios", "_queries")
STATEMENTS = """expectations assertions expected_behavior expected_behaviors expected_behaviour expected_outputs
    expected_output_characteristics expected_checks expected_calls checks rubric rubrics criteria evaluation_criteria
    success_criteria acceptance_criteria quality_criteria pass_criteria must must_have must_include must_mention
    should_include should_mention must_not must_not_have must_not_include must_not_mention should_not_include forbid
    forbidden forbidden_outputs forbidden_behavior forbidden_behaviors anti_expectations anti_patterns
    failure_conditions must_contain should_contain output_contains expected_output_contains must_not_contain
    should_not_contain output_not_contains expected_output_excludes required_artifacts""".split()
EXPECTED_TEXTS = ["expected_output", "ground_truth", "expected_result", "expected_response", "expected_answer"]
YES = ["should_trigger", "should_activate", "skill_should_trigger", "expected_trigger", "expect_trigger",
       "expect_activation", "must_activate", "must_trigger", "should_fire", "should_use_skill", "shouldTrigger",
       "shouldActivate"]
NO = ["should_not_trigger", "should_not_activate", "must_not_trigger", "should_not_fire", "shouldNotTrigger",
      "shouldNotActivate"]
NAMES = ["expected_skill", "expect_skill", "expected_activation"]
NO_SKILL = {"", "none", "null", "no", "no_skill", "no-skill", "n/a"}
# Kinds of assertions that make one check for each text that they search for.
ONE_FOR_EACH = {"contains", "not_contains", "content_contains", "contains_phrase", "content_includes_all",
                "contains_all", "output_contains", "starts_with", "ends_with"}


def load(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if path.endswith((".jsonl", ".ndjson")):
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    if path.endswith(".json"):
        return json.loads(text)
    import yaml
    return yaml.safe_load(text)


def message(value):
    """The message in a value: a text, or a mapping with a message or with what the user gives."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        for key in PROMPTS + ["content", "text", "user"]:
            if isinstance(value.get(key), str):
                return value[key]
        return "\n".join(f"{key}: {item if isinstance(item, str) else compact(item)}" for key, item in value.items())
    return None


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def prompts(item):
    found = []
    for key in PROMPTS:
        if item.get(key) is not None:
            said = message(item[key])
            found += [said] if said is not None else []
            break
    for key in ["turns", "prompts"]:
        for turn in item.get(key) or [] if isinstance(item.get(key), list) else []:
            said = message(turn)
            if said is not None and not (len(found) == 1 and found[0] == said):
                found.append(said)
    return found


def label(value):
    """Whether a label such as "no-trigger" says that the skill must be activated."""
    words = re.sub(r"[- ]", "_", str(value).strip().lower()).split("_")
    if words[-1] not in {"trigger", "activate", "activation", "fire", "use", "invoke"}:
        return None
    before = words[:-1]
    if before in ([], ["must"], ["should"]):
        return True
    if before in (["no"], ["not"], ["never"], ["dont"], ["must", "not"], ["should", "not"], ["do", "not"]):
        return False
    return None


def polarity(item):
    """What a case says of activation: must, must_not, either, or None."""
    said = set()
    for key in YES:
        if isinstance(item.get(key), bool):
            said.add("must" if item[key] else "must_not")
    for key in NO:
        if isinstance(item.get(key), bool):
            said.add("must_not" if item[key] else "must")
    for key in NAMES:
        if key in item:
            value = item[key]
            is_none = value is None or value is False or isinstance(value, str) and value.strip().lower() in NO_SKILL
            said.add("must_not" if is_none else "must")
    if isinstance(item.get("expect"), str) and label(item["expect"]) is not None:
        said.add("must" if label(item["expect"]) else "must_not")
    if item.get("must_not_activate"):
        said.add("must_not")
    if "skill" in item and "accept" in item:
        accepted = [name for name in [item["skill"]] + item["accept"] if name]
        none_may = not accepted or any(name.lower() == "none" for name in accepted)
        said.add("must_not" if none_may else "must")
    if isinstance(item.get("expected"), dict):
        inner = polarity(item["expected"])
        said |= set(inner.split("+")) if inner else set()
    return "+".join(sorted(said)) or None


def count_assertion(assertion):
    if isinstance(assertion, dict):
        kind = str(assertion.get("type") or "").replace("-", "_").lower()
        for key in ["value", "values", "needle", "phrase"]:
            if kind in ONE_FOR_EACH and isinstance(assertion.get(key), list):
                return max(len(assertion[key]), 1)
    return 1


def count_list(value):
    if value is None:
        return 0
    if isinstance(value, list):
        return sum(count_assertion(item) for item in value)
    if isinstance(value, dict):
        return sum(1 for item in value.values() if item is not None)
    return 1


def count_checks(item):
    """The number of checks of a case, without those of activation."""
    count = sum(count_list(item.get(key)) for key in STATEMENTS)
    if isinstance(item.get("expected_script"), str) and item["expected_script"].strip():
        count += 1
    for key in ["expected", "expect"]:
        value = item.get(key)
        if isinstance(value, dict):
            activation = set(YES + NO + NAMES)
            known = set(STATEMENTS + ["contains", "includes", "not_contains", "excludes", "files", "statements"])
            for name, inner in value.items():
                if name in activation:
                    continue
                count += count_list(inner) if name in known else inner is not None
        elif isinstance(value, list):
            count += count_list(value)
        elif value is not None and not isinstance(value, str):
            count += 1
    if count == 0:
        texts = [item.get(key) for key in EXPECTED_TEXTS] + [item.get("expected")]
        if isinstance(item.get("expect"), str) and label(item["expect"]) is None:
            texts.append(item["expect"])
        if any(isinstance(text, str) and text.strip() for text in texts):
            return 1
        if polarity(item) is None and isinstance(item.get("description"), str) and item["description"].strip():
            return 1
    return count


def is_case(item):
    return isinstance(item, dict) and bool(prompts(item)) and (
        count_checks({**item, "description": None}) > 0 or polarity(item) is not None)


def sorted_queries(document):
    """Queries in two lists: the skill must be activated, and must not."""
    found = []
    for key, expect in [("should_trigger", "must"), ("should_not_trigger", "must_not")]:
        for item in document.get(key) or [] if isinstance(document.get(key), list) else []:
            said = [item] if isinstance(item, str) else prompts(item)
            found.append({"prompts": said, "polarity": expect, "checks": 0})
    return found


def cases(document):
    """The cases of a document, or None if it holds no evals."""
    extra = []
    if isinstance(document, list):
        items = document
        if not items or not all(isinstance(item, dict) and prompts(item) for item in items):
            return None
    elif isinstance(document, dict):
        has_evals = isinstance(document.get("evals"), list)
        items = []
        for key, value in document.items():
            if not isinstance(value, list) or not value or key == "trigger_evals":
                continue
            named = key in LISTS or key.endswith(LIST_ENDINGS)
            whole = all(isinstance(item, dict) and prompts(item) for item in value)
            test = all if has_evals and key != "evals" else any
            if key == "evals" or named and whole and (test(is_case(item) for item in value) or routes(value)):
                items += value
        if isinstance(document.get("trigger_evals"), dict):
            extra = sorted_queries(document["trigger_evals"])
        if not items and not extra:
            if is_case(document):
                items = [document]
            else:
                return sorted_queries(document) or None
    else:
        return None
    if not any(is_case(item) or "accept" in item or count_checks(item) for item in items):
        return None
    own = [{"prompts": prompts(item), "polarity": polarity(item), "checks": count_checks(item)} for item in items]
    return own + extra


def routes(items):
    return all(isinstance(item, dict) and ("skill" in item or "expected_skill" in item) for item in items)


def eval_files(paths):
    for path in paths:
        if os.path.isfile(path):
            yield path
            continue
        for folder, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                if name.endswith((".json", ".jsonl", ".yaml", ".yml")):
                    yield os.path.join(folder, name)


def read_native(program, path):
    """What the program reads from a file: its suites as native documents, one JSON object."""
    ran = subprocess.run([program, "convert", path, "--to", "native", "--json"], capture_output=True, text=True)
    if ran.returncode != 0:
        return None, ran.stderr.strip()
    found = []
    for document in json.loads(ran.stdout)["files"]:
        for case in document["document"]["cases"]:
            prompt = case["prompt"]
            said = prompt if isinstance(prompt, list) else [prompt]
            activation = case.get("activation")
            labels = [activation if isinstance(activation, str) else activation["expect"]] if activation else []
            count = 0
            for check in case.get("checks") or []:
                if "activation" in check:
                    inner = check["activation"]
                    labels.append(inner if isinstance(inner, str) else inner["expect"])
                else:
                    count += 1
            if case.get("unsupported", "").startswith("its prompt is blank"):
                said = [""]
            found.append({"prompts": said, "polarity": "+".join(sorted(set(labels))) or None, "checks": count})
    return found, None


def difference(ours, theirs):
    if len(ours) != len(theirs):
        return f"{len(ours)} cases here, {len(theirs)} in the program"
    for number, (one, other) in enumerate(zip(ours, theirs), 1):
        same = len(one["prompts"]) == len(other["prompts"]) and all(
            b == a or b.endswith("\n\n" + a) or not a.strip() and not b for a, b in zip(one["prompts"], other["prompts"]))
        if not same:
            return f"case {number}: prompts {one['prompts']} here, {other['prompts']} in the program"
        for key in ["polarity", "checks"]:
            if one[key] != other[key]:
                return f"case {number}: {key} {one[key]} here, {other[key]} in the program"
    return None


def compare(program, paths):
    same, different, refused, other = 0, [], [], 0
    for path in eval_files(paths):
        try:
            ours = cases(load(path))
        except Exception as problem:  # A file that cannot be parsed is no eval file for this reader.
            print(f"unreadable {path}: {problem}")
            continue
        if not ours:
            other += 1
            continue
        theirs, why = read_native(program, path)
        if theirs is None:
            refused.append((path, why))
        elif difference(ours, theirs):
            different.append((path, difference(ours, theirs)))
        else:
            same += 1
    total = same + len(different) + len(refused)
    for path, why in refused:
        print(f"REFUSED {path}\n    {why[:600]}")
    for path, what in different:
        print(f"DIFFERENT {path}\n    {what[:600]}")
    share = 100 * same / total if total else 0
    print(f"{total} eval files: {same} the same ({share:.1f} %), {len(different)} different, {len(refused)} refused; "
          f"{other} files hold no evals")
    return 0 if not different and not refused else 1


def main(words):
    if words[:1] == ["--compare"]:
        return compare(words[1], words[2:])
    for path in eval_files(words):
        try:
            found = cases(load(path))
        except Exception as problem:
            print(json.dumps({"path": path, "error": str(problem)}))
            continue
        if found:
            print(json.dumps({"path": path, "cases": len(found), "checks": sum(one["checks"] for one in found),
                              "must": sum(one["polarity"] == "must" for one in found),
                              "must_not": sum(one["polarity"] == "must_not" for one in found)}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
