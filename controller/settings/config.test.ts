import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getHeapStatistics } from "node:v8";
import { describe, expect, it } from "vitest";
import { exposureOf, readSettings } from "./config.ts";

function fileWith(text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), "odp-config-")), "odp.toml");
  writeFileSync(path, text);
  return path;
}

const OPENID = {
  ODP_OPENID_ISSUER: "https://login.example.com/realm",
  ODP_OPENID_CLIENT_ID: "odp",
  ODP_OPENID_PUBLIC_URL: "https://odp.example.com",
};

describe("settings", () => {
  it("have defaults that run alone on one machine", () => {
    expect(readSettings({ PATH: "/bin" })).toMatchObject({
      host: "127.0.0.1",
      port: 8080,
      agentPort: 8081,
      tenant: "matrix",
      ospace: "/matrix",
      adminUser: "admin",
      adminPassword: undefined,
      store: "embedded",
      demo: true,
      publicNames: ["127.0.0.1"],
    });
  });

  it("leave the variables of agents and of the command line alone, and warn of others", () => {
    const told: string[] = [];
    const words = "AGENT_ENROL AGENT_TUNNELS AGENT_NAME URL USER PASSWORD TOKEN CONTEXT CONFIG_DIR TYPO".split(" ");
    readSettings(Object.fromEntries(words.map((word) => [`ODP_${word}`, "x"])), (text) => told.push(text));
    expect(told).toEqual([expect.stringContaining("ODP_TYPO")]);
  });

  it("bound the memory for bodies of calls, by default to what the heap has room for", () => {
    const heapMib = Math.floor(getHeapStatistics().heap_size_limit / 1_048_576);
    expect(readSettings({}).bodyMemoryMib).toBe(Math.min(1_024, Math.floor(heapMib / 2)));
    expect(readSettings({ ODP_BODY_MEMORY_MIB: "64" }).bodyMemoryMib).toBe(64);
    for (const text of ["63", "0", "-1", "1.5", "1 GiB", String(heapMib + 1)])
      expect(() => readSettings({ ODP_BODY_MEMORY_MIB: text }), text).toThrow(
        `The setting body_memory_mib (ODP_BODY_MEMORY_MIB) is wrong: it must be a whole number from 64 to ${String(heapMib)}, not ${text}.`,
      );
  });

  it("bound the history of files, and 0 days switch it off", () => {
    expect(readSettings({}).fileHistory).toEqual({ ageMs: 30 * 86_400_000, maxBytes: 2_048 * 1_048_576 });
    const given = { ODP_FILE_HISTORY_DAYS: "1", ODP_FILE_HISTORY_MIB: "3" };
    expect(readSettings(given).fileHistory).toEqual({ ageMs: 86_400_000, maxBytes: 3 * 1_048_576 });
    expect(readSettings({ ODP_FILE_HISTORY_DAYS: "0" }).fileHistory).toBeUndefined();
    expect(() => readSettings({ ODP_FILE_HISTORY_DAYS: "-1" })).toThrow("file_history_days");
  });

  it("that open plain HTTP to others with no trusted proxy in front are told as a warning", () => {
    const told = (host: string, proxies = ""): string | undefined =>
      exposureOf(readSettings({ ODP_HOST: host, ODP_TRUSTED_PROXIES: proxies }));
    for (const host of ["0.0.0.0", "::", "192.0.2.7", "odp.example"])
      expect(told(host)).toMatch(/passwords and sessions cross the network as plain text/);
    for (const host of ["127.0.0.1", "127.1.2.3", "::1", "localhost"]) expect(told(host)).toBeUndefined();
    expect(told("0.0.0.0", "10.0.0.1")).toBeUndefined();
  });

  it("take certificates and accounts of stores from files, and name what is missing or cannot be read", () => {
    const [ca, secret] = [fileWith("the authority"), fileWith("s3cret\n")];
    const given = { ODP_ETCD_CA_FILE: ca, ODP_ETCD_USER: "odp", ODP_ETCD_PASSWORD_FILE: secret };
    const { etcdAccess, cassandraAccess } = readSettings(given);
    expect(etcdAccess).toEqual({
      tls: { ca: Buffer.from("the authority") },
      account: { user: "odp", password: "s3cret" },
    });
    expect(cassandraAccess).toEqual({});
    const refused = (more: Record<string, string>) => expect(() => readSettings({ ...given, ...more }));
    refused({ ODP_ETCD_CERT_FILE: ca }).toThrow(/etcd_key_file .* missing/);
    refused({ ODP_ETCD_PASSWORD: "another" }).toThrow(/etcd_password_file .* says already/);
    refused({ ODP_CASSANDRA_PASSWORD: "p" }).toThrow(/cassandra_user .* missing/);
    refused({ ODP_CASSANDRA_USER: "odp" }).toThrow(/the password of odp is missing/);
    refused({ ODP_CASSANDRA_CERT_FILE: ca, ODP_CASSANDRA_KEY_FILE: ca }).toThrow(/cassandra_ca_file .* by TLS only/);
    refused({ ODP_CASSANDRA_CA_FILE: "/nowhere/ca.pem" }).toThrow(/cassandra_ca_file .* cannot be read/);
  });

  it("derive the agent port and the name space from what they belong to", () => {
    expect(readSettings({ ODP_PORT: "9000", ODP_TENANT: "acme" })).toMatchObject({ agentPort: 9001, ospace: "/acme" });
  });

  it("come from the file, and a variable wins over it", () => {
    const file = fileWith('port = 9100\ndemo = false\npublic_names = ["a.example", "b.example"]\n');
    const settings = readSettings({ ODP_CONFIG: file, ODP_PORT: "9200" });
    expect(settings).toMatchObject({ port: 9200, demo: false, publicNames: ["a.example", "b.example"] });
  });

  it.each([
    [
      { ODP_PORT: "70000" },
      /The setting port \(ODP_PORT\) is wrong: it must be a whole number from 0 to 65535, not 70000/,
    ],
    [{ ODP_PORT: "1e3" }, /ODP_PORT/],
    [{ ODP_STORE: "sqlite" }, /The setting store .* one of embedded, cluster, not sqlite/],
    [{ ODP_CLUSTER_PREFIX: "Up" }, /The setting cluster_prefix .* 1 to 20 lower-case letters and digits, not Up/],
    [{ ODP_STORE: "cluster" }, /The setting secret_key_file .* must share one/],
    [{ ODP_TENANT: "Acme" }, /The setting tenant/],
    [{ ODP_ETCD_ENDPOINTS: "localhost" }, /The setting etcd_endpoints/],
    [{ ODP_TRUSTED_PROXIES: "10.0.0.1, proxy.example" }, /The setting trusted_proxies .* not proxy.example/],
    [{ ODP_METRICS_READERS: "10.0.0.0/40" }, /The setting metrics_readers .* not 10.0.0.0\/40/],
    [{ ODP_OUTBOUND_NETWORKS: "localhost" }, /The setting outbound_networks .* not localhost/],
    [{ ODP_OPENID_ISSUER: "http://login.example.com" }, /The setting openid_public_url .* is set, so it is needed/],
    [
      { ...OPENID, ODP_OPENID_ISSUER: "http://login.example.com" },
      /The setting openid_issuer .* must begin with https:\/\//,
    ],
    [{ ...OPENID, ODP_OPENID_ISSUER: "login.example.com" }, /The setting openid_issuer .* not login.example.com/],
    [{ ...OPENID, ODP_OPENID_CLIENT_ID: "" }, /The setting openid_client_id/],
    [{ ...OPENID, ODP_OPENID_PUBLIC_URL: "https://odp.example.com/odp" }, /The setting openid_public_url .* no path/],
    [{ ...OPENID, ODP_OPENID_GROUPS: "ops=operators" }, /The setting openid_groups .* pairs such as/],
    [{ ...OPENID, ODP_OPENID_GROUPS: "boss=/administrators" }, /The setting openid_groups .* come by themselves/],
    [{ ...OPENID, ODP_OPENID_CREATE_USERS: "yes" }, /The setting openid_create_users .* not yes/],
    [{ ODP_DEMO: "yes" }, /The setting demo .* one of 0, 1, not yes/],
    [{ ODP_CONFIG: "/nowhere/odp.toml" }, /\/nowhere\/odp.toml cannot be read/],
  ])("refuse %j by name", (environment, message) => {
    expect(() => readSettings(environment)).toThrow(message);
  });

  it("refuse what a file says wrong", () => {
    expect(() => readSettings({ ODP_CONFIG: fileWith("prot = 1\n") })).toThrow(/There is no setting prot in/);
    expect(() => readSettings({ ODP_CONFIG: fileWith("port = \n") })).toThrow(/is not TOML/);
  });

  it("name an OpenID provider, and which groups its groups stand for", () => {
    expect(readSettings({}).openId).toBeUndefined();
    const groups = "ops=/operators, CN=dev,OU=all=/authors,ops=/viewers";
    const { openId } = readSettings({ ...OPENID, ODP_TENANT: "acme", ODP_OPENID_GROUPS: groups });
    expect(openId).toMatchObject({ tenant: "acme", scopes: ["openid", "profile"], createUsers: false });
    expect(openId?.groups).toEqual(
      new Map([
        ["ops", ["/operators", "/viewers"]],
        ["CN=dev,OU=all", ["/authors"]],
      ]),
    );
  });

  it("leave out variables that are another program's, and say so", () => {
    const warnings: string[] = [];
    const settings = readSettings(
      { ODP_PROT: "1", ODP_PORT: "tcp://10.0.0.1:8080", ODP_SERVICE_HOST: "10.0.0.1" },
      (text) => warnings.push(text),
    );
    expect(settings.port).toBe(8080);
    expect(warnings.map((text) => text.split(" ")[2])).toEqual(["ODP_PROT", "ODP_PORT", "ODP_SERVICE_HOST"]);
    expect(warnings[0]).toMatch(/did you mean port\?$/);
    expect(warnings[2]).toMatch(/Known: .*store/);
  });

  it("leave the variables of agents and tests alone", () => {
    expect(readSettings({ ODP_AGENT_TOKEN: "x", ODP_REQUIRE_CLUSTER: "1" }).port).toBe(8080);
  });
});
