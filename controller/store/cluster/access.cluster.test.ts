import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Etcd3, Range } from "etcd3";
import { afterAll, beforeAll, expect, test } from "vitest";
import { singleEtcd } from "../../../deploy/local/etcd.ts";
import { defaultCacheDir, installEtcd } from "../../../deploy/local/install.ts";
import { startDaemon, stopDaemon, waitUntilUp, type Daemon } from "../../../deploy/local/process.ts";
import { clusterRuntime, describeCluster } from "../../../test/helpers/cluster/cluster.ts";
import { TestAuthority } from "../../../test/helpers/hosts/test-authority.ts";
import type { StoreAccess } from "../access.ts";
import { Etcd } from "./etcd/etcd.ts";
import { EtcdKvStore } from "./etcd/kv.ts";
import { etcdIsReady } from "./readiness.ts";

const START_DEADLINE_MS = 60_000;
const account = { user: "odp", password: "s3cret of etcd" };
/** Prefix of all keys of an installation. */
const KEYS = "odp/";

describeCluster("an etcd that asks for certificates and accounts", () => {
  let folder: string;
  let daemon: Daemon;
  let endpoint: string;
  let tls: NonNullable<StoreAccess["tls"]>;
  let stranger: NonNullable<StoreAccess["tls"]>;
  const opened: Etcd[] = [];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "odp-etcd-tls-"));
    const [authority, other] = [await TestAuthority.make(), await TestAuthority.make()];
    const server = await authority.issue("server");
    tls = { ca: authority.ca, client: await authority.issue("client") };
    stranger = { ca: authority.ca, client: await other.issue("client") };
    const file = async (name: string, text: Buffer): Promise<string> => {
      await writeFile(join(folder, name), text, { mode: 0o600 });
      return join(folder, name);
    };
    const program = await installEtcd(defaultCacheDir(), () => undefined);
    const member = await singleEtcd({ program, dir: folder });
    endpoint = `https://127.0.0.1:${member.ports.client}`;
    const peer = `http://127.0.0.1:${member.ports.peer}`;
    const args = [
      ["--name", "etcd"],
      ["--data-dir", join(folder, "data")],
      ["--listen-client-urls", endpoint],
      ["--advertise-client-urls", endpoint],
      ["--listen-peer-urls", peer],
      ["--initial-advertise-peer-urls", peer],
      ["--initial-cluster", `etcd=${peer}`],
      ["--cert-file", await file("server.pem", server.cert)],
      ["--key-file", await file("server.key", server.key)],
      ["--trusted-ca-file", await file("ca.pem", authority.ca)],
      ["--client-cert-auth"],
      ["--log-level", "warn"],
    ];
    const mark = join(folder, "data");
    daemon = await startDaemon({ name: "etcd", program, args: args.flat(), mark, logFile: join(folder, "etcd.log") });
    const admin = new Etcd3({
      hosts: [endpoint],
      credentials: { rootCertificate: tls.ca, privateKey: tls.client?.key, certChain: tls.client?.cert },
    } as ConstructorParameters<typeof Etcd3>[0]);
    const answers = () =>
      admin.get("x").then(
        () => true,
        () => false,
      );
    await waitUntilUp(daemon, answers, START_DEADLINE_MS);
    await admin.role("root").create();
    await admin.user("root").create("nobody knows");
    await admin.user("root").addRole("root");
    await admin.role("odp").create();
    await admin.role("odp").grant({ permission: "Readwrite", range: Range.prefix(KEYS) });
    await admin.user(account.user).create(account.password);
    await admin.user(account.user).addRole("odp");
    await admin.auth.authEnable();
    admin.close();
  }, START_DEADLINE_MS);
  afterAll(async () => {
    for (const etcd of opened) etcd.close();
    if (daemon !== undefined) await stopDaemon(daemon, { now: true });
    await rm(folder, { recursive: true, force: true });
  });

  function opens(access: StoreAccess): Etcd {
    const etcd = new Etcd([endpoint], clusterRuntime, access);
    opened.push(etcd);
    return etcd;
  }
  /** One read without a wait of its own: refusals at the handshake are retried until the call's deadline. */
  const asked = (access: StoreAccess) => opens(access).kv.range({ key: Buffer.from(`${KEYS}x`) });

  test("is written, read and watched by who shows a certificate of its authority and has the keys of odp, and nothing else", async () => {
    const etcd = opens({ tls, account });
    const kv = new EtcdKvStore(etcd, `${KEYS}tenant/matrix/`);
    const leaving = new AbortController();
    const { revision } = await kv.list("");
    await kv.put("a", Buffer.from("1"));
    expect(Buffer.from((await kv.get("a"))?.value ?? []).toString()).toBe("1");
    for await (const events of kv.watch("", { sinceRevision: revision, signal: leaving.signal })) {
      expect(events).toMatchObject([{ kind: "put", entry: { key: "a" } }]);
      leaving.abort();
    }
    const lease = await kv.lease(10_000);
    await kv.put("b", Buffer.from("2"), { lease: lease.id });
    await lease.revoke();
    expect(await kv.get("b")).toBeUndefined();
    await etcdIsReady({ etcd, kv });
    await expect(new EtcdKvStore(etcd, "others/").get("a")).rejects.toThrow(/permission denied/);
    kv.close();
  });

  test.each([
    ["without a certificate", () => ({ tls: { ca: tls.ca }, account }), /No connection established/],
    ["with one of another authority", () => ({ tls: stranger, account }), /No connection established/],
    ["without an account", () => ({ tls }), /user name is empty|permission denied/],
    [
      "with a wrong password",
      () => ({ tls, account: { ...account, password: "guessed" } }),
      /authentication failed|invalid user ID or password/,
    ],
  ])("refuses who comes %s", async (_, access, reason) => {
    await expect(asked(access())).rejects.toThrow(reason);
  });

  test("is not believed when its certificate is of another authority", async () => {
    const { ca } = await TestAuthority.make();
    await expect(asked({ tls: { ...tls, ca }, account })).rejects.toThrow(/No connection established/);
  });
});
