import { expect, test } from "vitest";
import { EXTERNAL_AGENT_KEY, MaskedOutput, maskedOutputOf, RUN_CONTEXT_TOKEN } from "./masking.ts";

function masked(secret: string, pieces: readonly string[]): string {
  const output = new MaskedOutput(secret);
  return Buffer.concat([
    ...pieces.map((piece) => output.take(Buffer.from(piece), false)),
    output.rest(false),
  ]).toString();
}

test("a secret is left out wherever it is cut, and nothing else is changed", () => {
  const secret = "abcabd";
  for (const text of [
    `x${secret}y`,
    `${secret}${secret}`,
    `ababcabcabd${secret.slice(0, 5)}`,
    "abcab",
    "",
    "no secret\n",
  ])
    for (let first = 0; first <= text.length; first++)
      for (let second = first; second <= text.length; second++) {
        const pieces = [text.slice(0, first), text.slice(first, second), text.slice(second)];
        expect(masked(secret, pieces)).toBe(text.replaceAll(secret, "******"));
      }
});

test("output waits for no more than what may be the beginning of the secret, on each pipe by itself", () => {
  const output = new MaskedOutput("secret");
  expect(text(output.take(Buffer.from("name: sec"), false))).toBe("name: ");
  expect(text(output.take(Buffer.from("ret"), true))).toBe("ret");
  expect(text(output.take(Buffer.from("tor\n"), false))).toBe("sector\n");
});

test("of variables without a token nothing is masked", () => {
  expect(maskedOutputOf(undefined)).toBeUndefined();
  expect(maskedOutputOf({ PATH: "/bin" })).toBeUndefined();
  const output = maskedOutputOf({ [RUN_CONTEXT_TOKEN]: "odprun.sealed1.key.c2VjcmV0" });
  expect(text(output?.take(Buffer.from("odprun.sealed1.key.c2VjcmV0\n"), false))).toBe("odprun.sealed1.key.******\n");
});

test("of a key of several lines each line is masked, in pieces too, but no short one", () => {
  const key = "-----\nfirst-line\n  second-line\n}\n";
  const output = maskedOutputOf({ [EXTERNAL_AGENT_KEY]: key });
  const pieces = ["{}", "second-", "line of first", "-line-----\nfirst-"];
  const shown = pieces.map((piece) => text(output?.take(Buffer.from(piece), false))).join("");
  expect(shown + text(output?.rest(false))).toBe("{}****** of ******-----\nfirst-");
  expect(maskedOutputOf({ [EXTERNAL_AGENT_KEY]: " \n" })).toBeUndefined();
  expect(text(maskedOutputOf({ [EXTERNAL_AGENT_KEY]: "pin\n" })?.take(Buffer.from("pin."), false))).toBe("******.");
});

function text(bytes: Uint8Array | undefined): string {
  return new TextDecoder().decode(bytes);
}
