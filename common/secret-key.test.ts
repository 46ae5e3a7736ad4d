import { expect, test } from "vitest";
import { parseSecretKeys, secretKeyId, secretKeyLine } from "./secret-key.ts";

const KEY = Uint8Array.from({ length: 32 }, (_, at) => at);

test("a key is read from the line that was made of it, and named as ever", () => {
  expect(parseSecretKeys(`# of 2026\n\n${secretKeyLine(KEY)}`, "x")).toEqual([KEY]);
  expect(secretKeyId(KEY)).toBe("3605c5e8ffb1");
});
