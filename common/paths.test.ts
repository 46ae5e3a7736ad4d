import { expect, test } from "vitest";
import { absolutePath, fileName, isInside, relativePath } from "./paths.ts";

test("a relative path is normalised to single slashes", () => {
  expect(relativePath("a/b.sh")).toBe("a/b.sh");
  expect(relativePath("./a//b/./c/")).toBe("a/b/c");
  expect(relativePath("..a/b..")).toBe("..a/b..");
  expect(relativePath("脚本/检查.sh")).toBe("脚本/检查.sh");
});

test.each([
  ["..", "leaves"],
  ["a/../b", "leaves"],
  ["../../etc/passwd", "leaves"],
  ["a/..", "leaves"],
  ["/etc/passwd", "absolute"],
  ["//server/share", "absolute"],
  ["C:\\windows", "backslash"],
  ["C:windows", "drive"],
  ["a\\..\\b", "backslash"],
  ["a\u0000b", "control"],
  ["a\nb", "control"],
  ["gpj\u202e.sh", "control"],
  ["a\ud800", "valid text"],
  [".", "no file"],
  ["./", "no file"],
  ["", "empty"],
  ["x".repeat(256), "255 bytes"],
  ["a/".repeat(33) + "b", "32 folders"],
  ["a".repeat(200).concat("/").repeat(6), "1024 bytes"],
])("%j is refused as a relative path", (text, reason) => {
  expect(() => relativePath(text)).toThrow(reason);
});

test("normalising twice changes nothing and no segment is left that climbs", () => {
  const pieces = ["a", ".", "..", "", "b c", "...", "x/y"];
  for (const one of pieces)
    for (const two of pieces)
      for (const three of pieces) {
        const text = [one, two, three].join("/");
        let safe: string;
        try {
          safe = relativePath(text);
        } catch {
          continue;
        }
        expect(relativePath(safe)).toBe(safe);
        expect(safe.split("/")).not.toContain("..");
        expect(safe.startsWith("/")).toBe(false);
      }
});

test("an absolute folder is normalised, and never the root", () => {
  expect(absolutePath("/opt//odp/./x/")).toBe("/opt/odp/x");
  for (const text of ["/", "/.", "//", "opt/x", "/opt/../x", "C:/x", ""]) expect(() => absolutePath(text)).toThrow();
});

test("a file name is one segment", () => {
  expect(fileName("web-1.0")).toBe("web-1.0");
  for (const text of ["a/b", "..", ".", "", " a", "a\\b", "a/", "C:x"]) expect(() => fileName(text)).toThrow();
});

test("inside means the folder or below it, not beside it", () => {
  expect(isInside("/opt/odp", "/opt/odp")).toBe(true);
  expect(isInside("/opt/odp", "/opt/odp/x")).toBe(true);
  expect(isInside("/opt/odp", "/opt/odpx")).toBe(false);
});
