import { Secret, TOTP } from "otpauth";
import { afterEach, expect, test } from "vitest";
import { clusterSettings } from "../helpers/cluster/cluster.ts";
import { clusterVariables, Installation } from "./installation.ts";

const PASSWORD = "correct horse battery";
const ENGINES: readonly (readonly [string, () => Readonly<Record<string, string>>])[] = [
  ["embedded", () => ({})],
  ["cluster", () => clusterVariables(clusterSettings())],
];

let odp: Installation | undefined;
afterEach(() => odp?.stop());

test.each(ENGINES)(
  "an administrator who lost device, recovery codes and password comes in by two commands, on %s",
  async (_engine, settings) => {
    odp = await Installation.start({ ...settings(), ODP_ADMIN_PASSWORD: PASSWORD });
    const begun = await odp.ok("POST", "/user/secondfactor", new URLSearchParams({ password: PASSWORD }));
    const secret = Secret.fromBase32((begun as { readonly secret: string }).secret);
    const code = new TOTP({ secret }).generate();
    await odp.ok("POST", "/user/secondfactor/confirm", new URLSearchParams({ code }));
    expect(await odp.trySignIn("matrix", PASSWORD)).toMatchObject({ status: "error" });
    await odp.controller.kill("SIGTERM");

    const [, password = ""] = /^password +(\S+)$/m.exec(await odp.command("reset-password")) ?? [];
    await odp.startController();
    expect(await odp.trySignIn("matrix", PASSWORD)).toMatchObject({ code: "denied" });
    expect(await odp.trySignIn("matrix", password)).toMatchObject({ message: expect.stringMatching(/second factor/) });
    await odp.controller.kill("SIGTERM");

    expect(await odp.command("remove-second-factor", "matrix", "admin")).toMatch(/The second factor is removed/);
    await odp.startController();
    expect(await odp.trySignIn("matrix", password)).toMatchObject({ status: "ok" });
  },
);

test("a command for a user who is not there says so, and a name of none which there are", async () => {
  odp = await Installation.start({});
  await odp.controller.kill("SIGTERM");
  await expect(odp.command("remove-second-factor", "matrix", "nobody")).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining("nobody"),
  });
  await expect(odp.command("remove-everything")).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining("remove-second-factor [tenant] [user]"),
  });
});
