import { afterAll, beforeAll, expect, test } from "vitest";
import { makeKeys, makeLicence } from "../../../deploy/licence/make.ts";
import { openWorld, type World } from "../../../test/security/world.ts";

const keys = makeKeys();
let world: World;
let session: string;
beforeAll(async () => {
  world = await openWorld({ licenseKeys: [keys.publicKey] });
  session = await world.signIn();
});
afterAll(() => world[Symbol.asyncDispose]());

async function get(url: string): Promise<unknown> {
  return (await world.app.inject({ url: `${url}?sessionid=${session}` })).json();
}

async function upload(...texts: readonly string[]): Promise<unknown> {
  const parts = texts.map(
    (text) => `--B\r\nContent-Disposition: form-data; name="uploadfile"; filename="licence"\r\n\r\n${text}\r\n`,
  );
  const response = await world.app.inject({
    method: "POST",
    url: `/license/import?sessionid=${session}`,
    headers: { "content-type": "multipart/form-data; boundary=B" },
    payload: `${parts.join("")}--B--\r\n`,
  });
  return response.json();
}

test("a licence is uploaded, shown with the tenant, and refuses hosts beyond it", async () => {
  const none = { expire: -1, server: -1, agent: -1 };
  expect(await get("/license/info/matrix")).toEqual({ status: "ok", message: { name: "matrix", ...none } });
  const limits = { expire: -1, server: 1, agent: 1 };
  const text = makeLicence({ tenant: "matrix", serial: 1, ...limits }, keys.privateKey);
  expect(await upload(text)).toEqual({ status: "ok", message: { name: "matrix", ...limits, serial: 1 } });
  expect(await get("/companys/matrix")).toMatchObject({ message: { license: JSON.stringify(limits) } });
  const host = async (name: string): Promise<unknown> =>
    (await world.app.inject({ method: "POST", url: `/host?sessionid=${session}`, payload: { host: name } })).json();
  expect(await host("one")).toMatchObject({ status: "ok" });
  expect(await host("two")).toMatchObject({ status: "error", code: "too_large" });
  expect(await get("/license/info/matrix")).toMatchObject({ status: "ok", warnings: ["matrix has 1 of 1 hosts."] });
});

test("an upload of none, of several or of too large a file is refused", async () => {
  expect(await upload()).toMatchObject({ status: "error", code: "invalid" });
  expect(await upload("a", "b")).toMatchObject({ status: "error", code: "invalid" });
  expect(await upload("x".repeat(100_000))).toMatchObject({ status: "error", code: "too_large" });
});
