import { expect, it } from "vitest";
import { pem } from "./identity.ts";

it("writes certificates of every length as PEM without an empty line, which OpenSSL refuses", () => {
  for (let bytes = 1; bytes < 200; bytes++) {
    const der = Buffer.alloc(bytes, 7).toString("base64");
    const lines = pem(der).split("\n");
    expect(lines.slice(1, -2).join("")).toBe(der);
    expect(lines.slice(0, -1).every((line) => line.length > 0 && line.length <= 64)).toBe(true);
  }
});
