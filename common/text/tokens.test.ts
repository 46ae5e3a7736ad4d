import { expect, test } from "vitest";
import { collectTokens, mostDifferentTokens, searchTokens, tokens } from "./tokens.ts";

test("words are lower-cased runs of letters, digits and _", () => {
  expect(tokens("Disk_FULL on /dev/sda1: 97%")).toEqual(["disk_full", "on", "dev", "sda1", "97"]);
  expect(tokens("Größe ÉTÉ")).toEqual(["größe", "été"]);
});

test("scripts without spaces give pairs, wherever they begin and end", () => {
  expect(tokens("磁盘空间不足")).toEqual(["磁盘", "盘空", "空间", "间不", "不足"]);
  expect(tokens("db1磁盘full")).toEqual(["db1", "磁盘", "full"]);
  expect(tokens("中 ディスク")).toEqual(["中", "ディ", "ィス", "スク"]);
});

test("full-width forms equal ordinary ones", () => {
  expect(tokens("ＤＢ１")).toEqual(["db1"]);
});

test("every word of a text is found by what it is searched with", () => {
  const text = "Kernel: 内存不足 OOM_killer ended pid 42";
  for (const word of ["kernel", "OOM_KILLER", "内存", "不足", "42"]) {
    const wanted = searchTokens(word) ?? [];
    expect(wanted.length).toBeGreaterThan(0);
    expect(wanted.every((token) => tokens(text).includes(token))).toBe(true);
  }
});

test("beginnings and lone characters say nothing about tokens", () => {
  expect(searchTokens("web*")).toBeUndefined();
  expect(searchTokens("盘")).toBeUndefined();
  expect(searchTokens("--")).toBeUndefined();
});

test("collecting stops at the bound and says so", () => {
  const into = new Set<string>();
  expect(collectTokens("a b a b", into, 2)).toBe(true);
  expect(collectTokens("c", into, 2)).toBe(false);
  expect([...into]).toEqual(["a", "b"]);
});

test("the bound of different tokens holds for the densest texts", () => {
  const plain = Array.from({ length: 37 * 37 }, (_, at) => at.toString(36)).join(" ");
  for (const text of ["", "a", "a b", plain, "磁盘空间不足", "\ufdfa\ufdfb", "İ İİ a", `${plain} 磁盘`])
    expect(new Set(tokens(text)).size, text).toBeLessThanOrEqual(mostDifferentTokens(text));
  expect(mostDifferentTokens("word ".repeat(400))).toBeLessThan(1_000);
});

test("a text of one megabyte is cut in time that grows with its length only", () => {
  const long = "磁盘a".repeat(350_000);
  expect(tokens(long)).toHaveLength(700_000);
});
