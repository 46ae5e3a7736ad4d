import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { http, admin, useThings } from "../../../test/helpers/http/http-things.ts";

describe("the HTTP interface", () => {
  useThings();

  describe("uploads", () => {
    const multipart = (parts: string, end = "--B--\r\n") => ({
      payload: parts.replaceAll("\n", "\r\n") + end,
      headers: { "content-type": "multipart/form-data; boundary=B" },
    });
    const file = (name: string, text: string) =>
      `--B\nContent-Disposition: form-data; name="uploadfile"; filename="${name}"\n\n${text}\n`;
    const field = (name: string, text: string) => `--B\nContent-Disposition: form-data; name="${name}"\n\n${text}\n`;

    test("files and fields come in order with their names and are gone afterwards", async () => {
      const parts =
        field("name", "n") +
        file("dir/ä.txt", "one") +
        field("hosts[]", "x") +
        file("b.txt", "") +
        field("hosts[]", "y");
      const answer = await http.call(admin, { method: "POST", url: "/upload", ...multipart(parts) });
      expect(answer).toEqual({
        status: "ok",
        message: {
          name: "n",
          hosts: ["x", "y"],
          files: [
            { field: "uploadfile", filename: "dir/ä.txt", size: 3, text: "one" },
            { field: "uploadfile", filename: "b.txt", size: 0, text: "" },
          ],
        },
      });
      await expect.poll(() => readdir(join(http.engine.dir, "uploads"))).toEqual([]);
    });

    test("a body that is cut off or has no boundary is refused by name, and nothing stays", async () => {
      const cut = multipart(field("name", "n") + file("a.txt", "one"), "");
      expect(await http.call(admin, { method: "POST", url: "/upload", ...cut })).toMatchObject({
        code: "invalid",
        message: expect.stringMatching(/multipart body is broken/),
      });
      const without = { ...cut, headers: { "content-type": "multipart/form-data" } };
      expect(await http.call(admin, { method: "POST", url: "/upload", ...without })).toMatchObject({
        code: "invalid",
        message: expect.stringMatching(/multipart body is broken/),
      });
      await expect.poll(() => readdir(join(http.engine.dir, "uploads"))).toEqual([]);
    });

    test("too many files are refused", async () => {
      const many = multipart(file("a", "x").repeat(257));
      expect(await http.call(admin, { method: "POST", url: "/upload", ...many })).toMatchObject({ code: "too_large" });
    });

    test("a file that was not chosen makes no difference to the others", async () => {
      const none = `--B\r\nContent-Disposition: form-data; name="first"; filename=""\r\nContent-Type: application/octet-stream\r\n\r\n\r\n`;
      const payload = `${none}--B\r\nContent-Disposition: form-data; name="second"; filename="b"\r\n\r\nbytes\r\n${none}--B--\r\n`;
      const answer = await http.call(admin, {
        method: "POST",
        url: "/upload",
        payload,
        headers: { "content-type": "multipart/form-data; boundary=B" },
      });
      expect(answer).toEqual({
        status: "ok",
        message: { files: [{ field: "second", filename: "b", size: 5, text: "bytes" }] },
      });
    });

    test("a part without a name, and fields nested without end, are refused in our words", async () => {
      const send = async (type: string, payload: string) =>
        http.call(admin, { method: "POST", url: "/upload", payload, headers: { "content-type": type } });
      const nameless = (more: string) =>
        send("multipart/form-data; boundary=B", `--B\r\nContent-Disposition: form-data${more}\r\n\r\nx\r\n--B--\r\n`);
      for (const more of ["", '; filename="a"'])
        expect(await nameless(more)).toMatchObject({ code: "invalid", message: "A part of the form has no name." });
      const deep = `name${"[a]".repeat(3_000)}=x`;
      expect(await send("application/x-www-form-urlencoded", deep)).toMatchObject({
        code: "too_large",
        message: expect.stringContaining("nested deeper than 64"),
      });
      expect(
        await send(
          "multipart/form-data; boundary=B",
          `--B\r\nContent-Disposition: form-data; name="a${"[]".repeat(300)}"\r\n\r\nx\r\n--B--\r\n`,
        ),
      ).toMatchObject({ code: "too_large" });
    });

    test("no file is taken from a stranger", async () => {
      const response = await http.app.inject({ method: "POST", url: "/upload", ...multipart(file("a", "x")) });
      expect(response.json()).toMatchObject({ status: "signin" });
    });

    test("names of prototypes are no fields", async () => {
      const answer = await http.call(admin, { method: "POST", url: "/upload", ...multipart(field("__proto__", "x")) });
      expect(answer).toMatchObject({ code: "invalid" });
    });
  });
});
