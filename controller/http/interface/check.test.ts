import { Type } from "typebox";
import { describe, expect, test } from "vitest";
import { testRuntime } from "../../../test/helpers/time/runtime.ts";
import { buildHttp } from "../../app.ts";
import type { Endpoint } from "./endpoint.ts";

const Free = Type.Record(Type.String(), Type.Unknown());

describe("an interface with gaps is refused at the start", () => {
  const good = {
    method: "GET",
    path: "/a/:x",
    permission: "a:read",
    summary: "",
    input: Type.Object({ x: Type.String() }),
    output: Free,
    handler: async () => ({ message: {} }),
  } as const;
  const build = (...endpoints: unknown[]) =>
    buildHttp({
      runtime: testRuntime(),
      endpoints: endpoints as Endpoint[],
      sockets: [],
      services: {
        signIn: {
          bySession: async () => undefined,
          byPassword: async () => undefined,
          byToken: async () => undefined,
          onChange: () => {},
        },
        audit: { ready: async () => {}, write: async () => {}, record: async () => {} },
        ready: async () => ({ lost: [] }),
      },
      settings: { dataDir: "/nonexistent", version: "0" },
    });

  test("no permission, no object, a clash, an unnamed path parameter", async () => {
    await expect(build({ ...good, permission: undefined })).rejects.toThrow("GET /a/:x declares no permission");
    await expect(build({ ...good, permission: "everything" })).rejects.toThrow("declares no permission");
    await expect(build({ ...good, input: Type.String() })).rejects.toThrow("input schema that is no object");
    await expect(build(good, { ...good, path: "/a/:y/", input: Type.Object({ y: Type.String() }) })).rejects.toThrow(
      "Two endpoints answer GET /a/:",
    );
    await expect(build({ ...good, input: Type.Object({}) })).rejects.toThrow("does not name x");
  });
});
