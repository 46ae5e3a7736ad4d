import { expect, test } from "vitest";
import { PASSWORD_MAX_BYTES } from "../../../../common/limits.ts";
import { passwordFault } from "./password-policy.ts";

const WORDS = "vexing quartz lobby jump ";

test("a password may have as many bytes as the bound says, and no more", () => {
  const longest = WORDS.repeat(100).slice(0, PASSWORD_MAX_BYTES);
  expect(passwordFault(longest)).toBe("");
  expect(passwordFault(`${longest}x`)).toContain(`${PASSWORD_MAX_BYTES} bytes`);
  // Bytes count, not characters.
  expect(passwordFault(`${longest.slice(1)}é`)).toContain(`${PASSWORD_MAX_BYTES} bytes`);
});
