import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { HTTP_BODY_MAX_BYTES, HTTP_FORM_MAX_FIELDS } from "../../../common/limits.ts";
import { http, session, useWire, open, exchange } from "../../../test/helpers/http/wire-world.ts";

useWire();

const head = (type: string, length: number, more = ""): string =>
  `POST /echo?sessionid=${session} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: ${type}\r\nContent-Length: ${String(length)}\r\n${more}\r\n`;

describe("broken bytes", () => {
  test("what is no HTTP gets the envelope and the end of the connection", async () => {
    const answer = await exchange("NONSENSE\r\n\r\n");
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain(`"status":"error"`);
  });

  test("a head that is too large is named as such", async () => {
    const answer = await exchange(`GET / HTTP/1.1\r\nHost: x\r\nX: ${"x".repeat(100_000)}\r\n\r\n`);
    expect(answer).toContain("too_large");
  });

  test("a query of too many fields is refused, of a stranger too, and ends nothing but its call", async () => {
    const fields = "a&".repeat(HTTP_FORM_MAX_FIELDS + 1);
    for (const target of [`/echo?${fields}`, `/echo?sessionid=${session}&${fields}`]) {
      const answer = await exchange(
        `POST ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
      );
      expect(answer).toMatch(/More than 2000 form or query fields.*"code":"too_large"/);
    }
    const nowhere = await exchange(`GET /nowhere?${fields} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    expect(nowhere).toContain("not_found");
    expect((await http.app.inject({ url: `/healthz?${fields}` })).statusCode).toBe(200);
  });

  test("multipart that ends in the middle of a file", async () => {
    const body = `--B\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\nhalf a fi`;
    expect(await exchange(head("multipart/form-data; boundary=B", body.length) + body)).toMatch(
      /"status":"error".*multipart body is broken.*"code":"invalid"/,
    );
  });

  test("multipart without any part, and with garbage in place of one", async () => {
    for (const body of ["garbage without a boundary", `--B\r\nno headers`, `--B\r\n\r\n\r\n--B--`]) {
      const answer = await exchange(head("multipart/form-data; boundary=B", body.length) + body);
      expect(answer).toMatch(/^HTTP\/1\.1 (200|500) /);
      expect(answer).not.toContain("internal");
    }
  });

  test("a stranger's file is refused before it is taken in", async () => {
    const socket = await open();
    socket.write(
      `POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=B\r\nContent-Length: 100000000\r\n\r\n`,
    );
    socket.write(`--B\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\nthe first of many bytes`);
    const [answer] = await once(socket, "data");
    expect(String(answer)).toContain('"status":"signin"');
    socket.destroy();
  });

  test("bytes that are no text in the charset they claim", async () => {
    const socket = await open();
    socket.write(head("text/plain; charset=utf-8", 2));
    socket.write(Buffer.from([0xc3, 0x28]));
    const chunks: string[] = [];
    for await (const chunk of socket) chunks.push(String(chunk));
    expect(chunks.join("")).toMatch(/no utf-8 text.*"code":"invalid"/);
  });

  test("a body that is too large gets its answer although the client sends on", async () => {
    const answer = await exchange(head("text/plain", HTTP_BODY_MAX_BYTES + 10) + "x".repeat(HTTP_BODY_MAX_BYTES + 10));
    expect(answer).toMatch(/"code":"too_large"/);
  });

  test("a client that goes away while it sends leaves no fault behind", async () => {
    const socket = await open();
    socket.write(head("text/plain", 100) + "some");
    socket.destroy();
    expect((await http.app.inject({ url: "/healthz" })).statusCode).toBe(200);
  });
});

describe("offers of HTTP/2", () => {
  test("are ignored each, however many come at once", async () => {
    const offer =
      "Host: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n";
    const paths = ["/healthz", `/echo-none`, "/healthz", "/openapi.json", "/healthz"];
    const last = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    const answer = await exchange(paths.map((path) => `GET ${path} HTTP/1.1\r\n${offer}`).join("") + last);
    expect(answer.match(/HTTP\/1\.1 (200|500)/g)).toHaveLength(6);
  });

  test("are ignored, with and without a body", async () => {
    const offer = "Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n";
    const get = await exchange(
      `GET /healthz HTTP/1.1\r\nHost: x\r\n${offer}\r\nGET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    );
    expect(get.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
    const body = `{"name":"a"}`;
    const socket = await open();
    socket.write(
      `POST /echo?sessionid=${session} HTTP/1.1\r\nHost: x\r\n${offer}Content-Type: text/plain\r\nContent-Length: ${String(body.length)}\r\n\r\n`,
    );
    const first = once(socket, "data");
    socket.write(body);
    expect(String((await first)[0])).toContain(`"message":{"name":"a"}`);
    socket.destroy();
  });
});
