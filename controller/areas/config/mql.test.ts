import { expect, test } from "vitest";
import { configWorld } from "../../../test/helpers/areas/config.ts";
import { openTestEngine } from "../../../test/helpers/engines/engine.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { QueryService } from "../query/index.ts";
import { ConfigHistory } from "./history.ts";
import { MASK } from "./rights.ts";
import { ConfigService } from "./service.ts";

const admin = testPrincipal();
const viewer = testPrincipal("viewer");

test("configuration is asked and changed by MQL as by its own interface", async () => {
  await using engine = await openTestEngine();
  await using world = configWorld(engine);
  const config = new ConfigService(world);
  const query = new QueryService({ objects: world.objects, runtime: world.runtime });
  const rows = (text: string, by = admin) => query.rows(by, text);
  await config.set(admin, { key: "/matrix/etc/mail/host", value: "mx1" });
  await config.set(admin, { key: "/matrix/etc/mail/password", value: "hunter2", secret: true });
  await config.set(admin, { key: "/matrix/rules/r", value: "--class=/matrix/hidden\n" });

  const ofMail = "from /matrix/system/config where parent='/matrix/etc/mail' order by key";
  expect(await rows(`select key, name, value, secret, version, author ${ofMail}`)).toMatchObject([
    { key: "/matrix/etc/mail/host", name: "host", value: "mx1", secret: false, version: 1, author: "administrator" },
    { key: "/matrix/etc/mail/password", value: MASK, secret: true },
  ]);
  const others = { ...admin, data: [...admin.data, { class: "/matrix/hidden", access: "none" as const }] };
  expect(await rows("select key from /matrix/system/config where name='r'")).toHaveLength(1);
  expect(await rows("select key from /matrix/system/config where name='r'", others)).toHaveLength(0);

  await query.run(admin, "insert into /matrix/system/config (key, value) values ('/matrix/etc/new', 'n')");
  await query.run(admin, "update /matrix/system/config set value='mx2' where name='host'");
  expect((await config.tree(admin, "/matrix/etc/mail/host")).value).toBe("mx2");
  expect((await new ConfigHistory(world).history(admin, "/matrix/etc/mail/host")).length).toBe(2);
  await query.run(admin, "delete from /matrix/system/config where key='/matrix/etc/new'");
  await expect(config.tree(admin, "/matrix/etc/new")).rejects.toMatchObject({ code: "not_found" });

  for (const [text, code] of [
    ["insert into /matrix/system/config (key, value) values ('/second/x', 'n')", "invalid"],
    ["insert into /matrix/system/config (key, value) values ('/matrix/rules/x', '--parser=xml')", "invalid"],
    ["insert into /matrix/system/config (key, value, author) values ('/matrix/x', 'n', 'me')", "unsupported"],
    ["update /matrix/system/config set author='me' where name='host'", "unsupported"],
  ] as const)
    await expect(query.run(admin, text), text).rejects.toMatchObject({ code });
  await expect(query.run(viewer, "update /matrix/system/config set value='x' where name='host'")).rejects.toMatchObject(
    {
      code: "denied",
    },
  );
  const readers = { ...admin, grants: ["objects:read", "objects:write"] };
  await expect(rows("select key from /matrix/system/config", readers)).rejects.toMatchObject({ code: "denied" });
});
