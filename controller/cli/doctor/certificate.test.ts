import { expect, test, vi } from "vitest";
import { certificateEnd } from "./certificate.ts";

test.each(["https://127.0.0.1:1", "https://[::1]:1"])(
  "an address without a name, %s, is no name of a server",
  async (url) => {
    const warn = vi.spyOn(process, "emitWarning");
    try {
      await expect(certificateEnd(new URL(url), new AbortController().signal, 60_000)).rejects.toThrow();
      expect(warn).not.toHaveBeenCalled();
    } finally {
      warn.mockRestore();
    }
  },
);
