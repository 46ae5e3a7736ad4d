import { expect, test } from "vitest";
import { SETTINGS, type Setting } from "./catalogue.ts";
import { readSettings } from "./config.ts";

const SECRET_NAME = /pass|secret|key|token|credential/;
/** Names of files, public keys, and a switch. */
const NO_SECRETS = /_file$|^license_keys$|^ssh_trust_first_key$/;

test("each setting whose name tells of a secret is one, unless it is the name of a file or public", () => {
  const open = SETTINGS.filter((setting: Setting) => setting.isSecret !== true).map(({ name }) => name);
  expect(open.filter((name) => SECRET_NAME.test(name) && !NO_SECRETS.test(name))).toEqual([]);
});

test("settings are shown without secrets: what is given, and the default", () => {
  const secrets = {
    ODP_ADMIN_PASSWORD: "kestrel-1",
    ODP_SECRET_KEY: "kestrel-2".repeat(5),
    ODP_OPENID_CLIENT_SECRET: "kestrel-3",
    ODP_PASSWORD_WORDS: "kestrel",
  };
  const { shown } = readSettings({ ...secrets, ODP_PORT: "8390", ODP_DEMO: "" });
  expect(JSON.stringify(shown)).not.toContain("kestrel");
  expect(shown).toContainEqual({ name: "port", value: "8390", default: "8080", given: true });
  expect(shown).toContainEqual({ name: "demo", default: expect.any(String) as string, given: false });
  expect(shown).toContainEqual({ name: "admin_password", default: expect.any(String) as string, given: true });
  expect(shown.map(({ name }) => name)).toEqual(SETTINGS.map(({ name }) => name));
});
