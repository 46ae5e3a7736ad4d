import { expect, test } from "vitest";
import { parseConditionText } from "../../../../common/mql/index.ts";
import { withValues } from "./literal.ts";

test("values stand in place of placeholders, and parts without any are not copied", () => {
  const condition = parseConditionText("a = 1 and (b = ? or c in (1, 2))");
  const [first, second] = condition.kind === "and" ? condition.items : [];
  const made = withValues(condition, ["x"]);
  const [firstMade, secondMade] = made.kind === "and" ? made.items : [];
  expect(firstMade).toBe(first);
  expect(secondMade).not.toBe(second);
  expect(JSON.stringify(secondMade)).toContain('"value":"x"');
  expect(JSON.stringify(condition)).toContain("placeholder");
  expect(withValues(first, [])).toBe(first);
});
