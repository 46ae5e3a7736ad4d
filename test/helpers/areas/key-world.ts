import { rm } from "node:fs/promises";
import { assemble, type Assembly } from "../../../controller/assembly.ts";
import { secretBox, type KeyRing, type SealedKind } from "../../../controller/secrets/index.ts";
import type { Engine } from "../../../controller/store/engine.ts";
import { decodeStored } from "../../../controller/store/format.ts";
import { realClock, seededRandom } from "../time/clock.ts";
import { openTestEngine, type TestEngine } from "../engines/engine.ts";
import { storeFolder } from "../runs/folders.ts";
import { testPrincipal, testRuntime } from "../time/runtime.ts";

export const [OLD, NEW] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)] as const;

const admin = testPrincipal();
let names = 0;

/** A whole controller without ports. A test changes its keys. */
export class KeyWorld implements AsyncDisposable {
  readonly assembly: Assembly;
  readonly secrets: KeyRing;
  readonly engine: Engine;
  readonly #given: { keys: readonly Uint8Array[] };
  readonly #end: () => Promise<void>;

  private constructor(parts: {
    readonly assembly: Assembly;
    readonly secrets: KeyRing;
    readonly engine: Engine;
    readonly given: { keys: readonly Uint8Array[] };
    readonly end: () => Promise<void>;
  }) {
    this.assembly = parts.assembly;
    this.secrets = parts.secrets;
    this.engine = parts.engine;
    this.#given = parts.given;
    this.#end = parts.end;
  }

  /** Opens it over the given engine, or over its own, which is closed with it. */
  static async open(keys: readonly Uint8Array[], over?: TestEngine): Promise<KeyWorld> {
    const engine = over ?? (await openTestEngine());
    const folder = await storeFolder("odp-keys-");
    const given = { keys };
    const secrets = secretBox(keys, () => Promise.resolve(given.keys));
    const assembly = await assemble({
      engine,
      secrets,
      keySource: { kind: "file", file: "/etc/odp/secret.key", create: false },
      keySettleMs: 0,
      version: "test",
      runtime: { ...testRuntime(realClock), random: seededRandom(++names) },
      controllerId: `keys-${names}`,
      publicNames: ["127.0.0.1"],
      dataDir: folder,
      agentPort: () => 1,
    });
    for (const name of ["matrix", "second"]) await assembly.tenants.ensureTenant({ name, ospace: `/${name}` });
    const end = async (): Promise<void> => {
      await assembly.close();
      if (!over) await engine.close();
      await rm(folder, { recursive: true, force: true });
    };
    return new KeyWorld({ assembly, secrets, engine, given, end });
  }

  /** Replaces the keys of the source; the controller reads them in its next round. */
  use(keys: readonly Uint8Array[]): void {
    this.#given.keys = keys;
  }

  get kinds(): readonly SealedKind[] {
    return this.assembly.sealedKinds();
  }

  /** Creates one sealed value of each kind. */
  async sealOne(name: string): Promise<void> {
    const { hosts, users, config, jobGroups } = this.assembly;
    await hosts.save(admin, {
      host: name,
      iplist: ["192.0.2.1"],
      secret: `shared ${name}`,
      config: { username: "odp", password: `password ${name}`, apitoken: `token ${name}` },
    });
    await jobGroups.save(admin, { name, gtype: "proxy", hosts: [{ host: "h", username: "u", password: name }] });
    for (const value of ["first", "second"])
      await config.set(admin, { key: `/matrix/${name}`, value: `${value} ${name}`, secret: true });
    await users.operator.ensureAdministrator({ tenant: "matrix", username: name, password: "correct horse battery" });
    await users.secondFactors.begin({ ...admin, user: name }, "correct horse battery");
  }

  /** Throws unless all values open with their original content. */
  async opensAll(name: string): Promise<void> {
    const record = await this.assembly.hosts.find(admin, name);
    const { password = "", apitoken = "" } = record?.credentials ?? {};
    const { hosts } = await this.stored<{ hosts: [{ sealed: string }] }>("matrix", `jobs/group/proxy/${name}`);
    const place = JSON.stringify(["h", "", "", "u"]);
    const group = `matrix/group/${JSON.stringify(["proxy", name])} for ${place}`;
    const { secrets } = this;
    const found = [
      this.credential(password, name),
      secrets.open(apitoken, `matrix/host/${name}/apitoken`),
      secrets.open(record?.secret ?? "", `matrix/host/${name}/secret`),
      secrets.open(hosts[0].sealed, group),
      await this.opened(`/matrix/${name}`),
    ];
    const expected = [`password ${name}`, `token ${name}`, `shared ${name}`, name, `second ${name}`];
    if (found.join() !== expected.join()) throw new Error(`${found.join()} instead of ${expected.join()}`);
  }

  /** Opens the password of a host that `sealOne` created. */
  credential(sealed: string, host: string): string {
    const destination = JSON.stringify(["odp", "192.0.2.1", 22]);
    return this.secrets.open(sealed, `matrix/host/${host}/password for ${destination}`);
  }

  async opened(key: string): Promise<string> {
    return this.secrets.open((await this.stored("matrix", `config${key}`)).sealed, `matrix/config${key}`);
  }

  async stored<T = { readonly sealed: string }>(tenant: string, key: string): Promise<T> {
    const entry = await (await this.engine.tenant(tenant)).kv.get(key);
    if (!entry) throw new Error(`There is no ${key}.`);
    return decodeStored<T>(entry.value);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#end();
  }
}
