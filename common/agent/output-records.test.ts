import { expect, test } from "vitest";
import { compileCutter } from "./records.ts";
import { RECORD_MAX_BYTES } from "../limits.ts";
import { encodingNamed } from "../text/encodings.ts";
import type { RawRecord } from "./raw-records.ts";
import { outputRecords, type OutputCutting } from "./output-records.ts";

interface Output {
  readonly encoding?: string;
  readonly split?: boolean;
  readonly delimiter?: string;
  /** The delimiter is found in the encoding. */
  readonly isEncoded?: boolean;
}

/** Records of a command with that output, which comes byte by byte. */
function sent(bytes: Buffer, { encoding: name, split = true, delimiter, isEncoded = true }: Output = {}) {
  const encoding = name === undefined ? undefined : encodingNamed(name, "encoding");
  const cutter = compileCutter({ delimiter });
  const encodedCutter = encoding && isEncoded ? compileCutter({ delimiter, encoding }) : undefined;
  const records = outputRecords({ spec: { split }, cutter, encodedCutter, encoding } as OutputCutting);
  const made: RawRecord[] = [];
  for (let at = 0; at < bytes.length; at += 1) made.push(...records.push(bytes.subarray(at, at + 1)));
  made.push(...records.end());
  const shown = made.map(({ bytes: text, cut, malformed = false, raw }) => ({
    text: Buffer.from(text).toString(),
    ...(cut && { cut }),
    ...(malformed && { malformed, raw: raw && Buffer.from(raw).toString("hex") }),
  }));
  return { shown, malformed: records.malformed };
}

const hex = (text: string): Buffer => Buffer.from(text, "hex");

test("lines in an encoding are read one by one; a malformed one comes with its bytes", () => {
  expect(sent(hex("b1e0c2eb0ad6ff620d0a630a"), { encoding: "gbk" })).toEqual({
    shown: [{ text: "编码" }, { text: "\ufffdb", malformed: true, raw: "d6ff62" }, { text: "c" }],
    malformed: 1,
  });
  expect(sent(hex("fffe61000a0000d80a0062000a00"), { encoding: "utf-16le" }).shown).toEqual([
    { text: "a" },
    { text: "\ufffd", malformed: true, raw: "00d8" },
    { text: "b" },
  ]);
});

test("a whole output is malformed where a character of what is kept is", () => {
  expect(sent(hex("610ad6ff0d0a"), { encoding: "gbk", split: false }).shown).toEqual([
    { text: "a\n\ufffd", malformed: true, raw: "610ad6ff" },
  ]);
  const long = Buffer.concat([Buffer.alloc(RECORD_MAX_BYTES + 1, "x"), hex("ff")]);
  expect(sent(long, { encoding: "gbk", split: false })).toEqual({
    shown: [{ text: "x".repeat(RECORD_MAX_BYTES), cut: true }],
    malformed: 1,
  });
});

test("a delimiter that is not found in the encoding cuts the text: its records are marked, and their bytes not known", () => {
  const output = { encoding: "gbk", delimiter: ";", isEncoded: false };
  expect(sent(hex("b1e03bff3bc2eb"), { ...output })).toEqual({
    shown: [{ text: "编" }, { text: ";\ufffd", malformed: true, raw: undefined }, { text: ";码" }],
    malformed: 1,
  });
});

test("without an encoding the bytes pass as they are", () => {
  expect(sent(hex("610a620a")).shown).toEqual([{ text: "a" }, { text: "b" }]);
});
