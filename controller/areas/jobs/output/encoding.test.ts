import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { encodingNamed } from "../../../../common/text/encodings.ts";
import { decodeText } from "../../../../common/text/text-stream.ts";
import { encodedLine, encodingOf, OutputText } from "./encoding.ts";

/** Output of a real shell for the line. */
const shell = (line: string): Buffer => execFileSync("/bin/sh", ["-c", line]);

test.each([
  ["gbk", '编码 it\'s "q" $HOME `x`'],
  ["gb18030", "编码"],
  ["big5", "編碼"],
  ["shift_jis", "文字コード"],
  ["euc-kr", "한글"],
  ["windows-1251", "Кодировка"],
  ["latin1", "Größe für 5 €"],
])("in %s a shell reads %s", (encoding, text) => {
  const word = `'${text.replaceAll("'", "'\\''")}'`;
  const written = shell(encodedLine(`printf %s ${word}`, encoding));
  expect(decodeText(written, encodingNamed(encoding))).toEqual({ text, malformed: 0, places: [] });
  expect(written.equals(Buffer.from(text))).toBe(false);
});

test("what says the same in both encodings is left as it is", () => {
  for (const [line, encoding] of [
    ["echo plain", "gbk"],
    ["echo größe", "utf-8"],
    ["echo größe", "utf8"],
  ] as const)
    expect(encodedLine(line, encoding)).toBe(line);
});

test("what cannot be written or is no encoding is refused by name", () => {
  expect(() => encodedLine("echo 编", "latin1")).toThrow('"编" cannot be written in windows-1252');
  expect(() => encodingOf("klingon")).toThrow('argenc="klingon" is no encoding');
  expect(() => encodingOf("utf-16le")).toThrow("zero bytes");
});

test("output comes as UTF-8, also where a character comes in pieces and both streams at once", () => {
  const text = new OutputText("gbk");
  const bytes = Buffer.from(encodeGbk("编码"));
  const pieces = [...bytes].flatMap((byte) =>
    [false, true].map((stderr) => text.take({ stderr, data: Buffer.from([byte]) })),
  );
  for (const stderr of [false, true])
    expect(Buffer.concat(pieces.filter((piece) => piece.stderr === stderr).map(({ data }) => data)).toString()).toBe(
      "编码",
    );
  expect(text.rest()).toEqual([]);
  expect(text.complaint).toBe("");
  text.take({ stderr: true, data: bytes.subarray(0, 1) });
  expect(text.rest().map(({ stderr, data }) => [stderr, Buffer.from(data).toString()])).toEqual([[true, "\ufffd"]]);
  expect(text.complaint).toBe("1 character of the output is no gbk, as argenc says.");
});

function encodeGbk(text: string): Uint8Array {
  return shell(encodedLine(`printf %s '${text}'`, "gbk"));
}
