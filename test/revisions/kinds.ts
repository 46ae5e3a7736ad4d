type Fields<T = string> = Readonly<Record<string, T | undefined>>;

/** One call that writes. Without `json`, `form` or `parts` it has no body. */
export interface Change {
  readonly method: "POST" | "PUT" | "PATCH" | "DELETE";
  readonly url: string;
  /** Path of the endpoint, if it is not that of the url. */
  readonly path?: string;
  readonly json?: unknown;
  readonly form?: Fields;
  readonly parts?: Fields<string | readonly [filename: string, content: string]>;
}

export interface Answered {
  readonly message: unknown;
  /** Value of the header `ETag`, without its quotes. */
  readonly tag: string | undefined;
}

/** Makes calls as an administrator. Throws if the answer is not ok. */
export interface Client {
  get(url: string): Promise<Answered>;
  change(change: Change, headers?: Readonly<Record<string, string>>): Promise<Answered>;
}

/** How clients make, read and change definitions of one kind. */
export interface Kind {
  readonly kind: string;
  /** Makes the definition of that name. */
  readonly make: (name: string) => Change;
  /** True: `make` refuses a name that is taken, also without a condition. */
  readonly makesNewOnly?: true;
  /** True: all names stand for one definition. */
  readonly isSingle?: true;
  /** Calls that change or remove the definition of that name, which is there. */
  readonly changes: (name: string, client: Client) => Promise<readonly Change[]> | readonly Change[];
  /** The revision, as clients read it. Throws if there is no such definition. */
  readonly revision: (name: string, client: Client) => Promise<string>;
  /** The revision that clients read after this change, if the change makes another definition. */
  readonly revisionAfter?: (change: Change, client: Client) => Promise<string> | undefined;
}

/** Calls that make what the definitions below need. */
export const NEEDS: readonly Change[] = [
  { method: "POST", url: "/mxobject/mql", form: { mql: "create class /matrix/box (name varchar, n int, keys(name))" } },
  { method: "PUT", url: "/mxobject/rule", form: { key: "/matrix/rules/load", value: ruleText("name,n") } },
  { method: "POST", url: "/host", json: { host: "web-1" } },
];

export const KINDS: readonly Kind[] = [
  {
    kind: "job",
    make: (name) => ({ method: "POST", url: "/job", json: job(name, "made") }),
    changes: (name) => [
      { method: "POST", url: "/job", json: job(name, "replaced") },
      { method: "PUT", url: "/job", json: { name, dir: "ops", description: "edited" } },
      { method: "POST", url: "/job/merge", json: { name, dir: "ops", description: "merged" } },
      { method: "PATCH", url: `/job/${name}@ops`, path: "/job/*", json: { description: "patched" } },
      { method: "DELETE", url: `/job/${name}@ops`, path: "/job/*" },
    ],
    revision: (name, client) => tagged(client, `/job/${name}@ops`),
  },
  {
    kind: "group of hosts",
    make: (name) => ({ method: "POST", url: "/group", json: hostGroup(name, "a") }),
    changes: (name) => [
      { method: "POST", url: "/group", json: hostGroup(name, "b") },
      { method: "PUT", url: "/group", json: hostGroup(name, "c") },
      { method: "DELETE", url: `/group/group/${name}`, path: "/group/:gtype/:name" },
    ],
    revision: (name, client) => listed(client, "/group", name),
  },
  {
    kind: "policy",
    make: (name) => ({
      method: "POST",
      url: "/monitoring/policy",
      json: { ...policy(name, "true"), hosts: ["web-1"] },
    }),
    changes: (name) => [
      { method: "POST", url: "/monitoring/policy", json: policy(name, "false") },
      { method: "POST", url: `/monitoring/policy/deploy/${name}`, path: "/monitoring/policy/deploy/:name", json: {} },
      {
        method: "POST",
        url: `/monitoring/policy/undeploy/${name}`,
        path: "/monitoring/policy/undeploy/:name",
        json: {},
      },
      { method: "PATCH", url: `/monitoring/policy/${name}`, path: "/monitoring/policy/:name", json: { interval: 9 } },
      { method: "DELETE", url: `/monitoring/policy/${name}?force=true`, path: "/monitoring/policy/:name" },
    ],
    revision: (name, client) => tagged(client, `/monitoring/policy/${name}`),
  },
  {
    kind: "policy of logs",
    make: (name) => ({ method: "POST", url: "/monitoring/policy/log", json: logPolicy(name, "a.log") }),
    changes: (name) => [{ method: "POST", url: "/monitoring/policy/log", json: logPolicy(name, "b.log") }],
    revision: (name, client) => tagged(client, `/monitoring/policy/${name}`),
  },
  {
    kind: "rule",
    make: (name) => ({ method: "PUT", url: "/mxobject/rule", form: rule(name, "name") }),
    changes: (name) => [
      { method: "PUT", url: "/mxobject/rule", form: rule(name, "name,n") },
      { method: "DELETE", url: "/mxobject/rule", form: { key: `/matrix/rules/${name}` } },
    ],
    revision: async (name, client) =>
      revisionIn(await client.get("/mxobject/rule"), (one) => one.key === `/matrix/rules/${name}`),
  },
  {
    kind: "rule of a class and type",
    isSingle: true,
    make: () => ({ method: "POST", url: "/mxobject/rule/new", json: newRule(["name"]) }),
    changes: () => [{ method: "POST", url: "/mxobject/rule/new", json: newRule(["name", "n"]) }],
    revision: async (_, client) =>
      revisionIn(await client.get("/mxobject/rule"), (one) => one.key === "/matrix/rules/box/csv"),
  },
  {
    kind: "trigger",
    make: (name) => ({ method: "PUT", url: "/mxobject/trigger", json: trigger(name, "local a = 1") }),
    changes: (name) => [
      { method: "PUT", url: "/mxobject/trigger", json: trigger(name, "local a = 2") },
      { method: "DELETE", url: "/mxobject/trigger", form: { class: "/matrix/box", name } },
    ],
    async revision(name, client) {
      const { message } = await client.get("/mxobject/trigger?class=/matrix/box");
      const [{ revision }] = message as [{ readonly revision: Readonly<Record<string, string>> }];
      return required(revision[name]);
    },
  },
  {
    kind: "entry of configuration",
    make: (name) => ({ method: "POST", url: "/config/set", form: { key: `/matrix/etc/${name}`, value: "1" } }),
    changes: (name) => [
      { method: "POST", url: "/config/set", form: { key: `/matrix/etc/${name}`, value: "2" } },
      { method: "POST", url: "/config/rollback", form: { key: `/matrix/etc/${name}`, version: "1" } },
      { method: "POST", url: "/config/del", form: { key: `/matrix/etc/${name}` } },
    ],
    revision: (name, client) => tagged(client, `/config/get?key=/matrix/etc/${name}`),
  },
  {
    kind: "group of users",
    make: (name) => ({ method: "POST", url: "/admin/perms/group", json: { name } }),
    makesNewOnly: true,
    async changes(name, client) {
      const { message } = await client.get("/admin/perms/group");
      const { id } = (message as readonly { readonly id: string; readonly name: string }[]).find(
        (one) => one.name === name,
      )!;
      return [
        { method: "PUT", url: "/admin/perms/group", json: { id, tags: ["edited"] } },
        { method: "DELETE", url: `/admin/perms/group/${id}`, path: "/admin/perms/group/:id" },
      ];
    },
    revision: (name, client) => listed(client, "/admin/perms/group", name),
  },
  {
    kind: "API permission",
    make: (name) => ({ method: "POST", url: "/admin/perms/api", parts: { name, path: "/matrix/a" } }),
    makesNewOnly: true,
    changes: (name) => [
      { method: "PUT", url: `/admin/perms/api/${name}`, path: "/admin/perms/api/:name", parts: { path: "/matrix/b" } },
      {
        ...{ method: "PUT", url: `/admin/perms/api/${name}/group`, path: "/admin/perms/api/:name/group" },
        parts: { group: "/viewers" },
      },
      {
        ...{
          method: "DELETE",
          url: `/admin/perms/api/${name}/group?group=/viewers`,
          path: "/admin/perms/api/:name/group",
        },
      },
      { method: "DELETE", url: `/admin/perms/api/${name}`, path: "/admin/perms/api/:name" },
    ],
    revision: (name, client) => tagged(client, `/admin/perms/api/${name}`),
  },
  {
    kind: "user",
    make: (username) => ({
      method: "POST",
      url: "/admin/users/new",
      json: { ...node(username), passwd: "Qe7-kT2-wZ9-pL4" },
    }),
    makesNewOnly: true,
    changes: changesOfNode,
    revision: (name, client) => tagged(client, `/admin/users?fullname=/${name}`),
  },
  {
    kind: "organisation",
    make: (username) => ({ method: "POST", url: "/admin/users/new", json: { ...node(username), otype: "org" } }),
    makesNewOnly: true,
    changes: changesOfNode,
    revision: (name, client) => tagged(client, `/admin/users?fullname=/${name}`),
  },
  {
    kind: "depot version",
    make: (name) => ({ method: "POST", url: "/monitoring/depot", parts: depot(name, "made") }),
    makesNewOnly: true,
    changes: (name) => [
      { method: "PUT", url: "/monitoring/depot", parts: { name, version: "1.0.0", remark: "edited" } },
      { method: "PUT", url: "/monitoring/depot", parts: { ...depot(name, "replaced"), overwrite: "true" } },
      {
        method: "PUT",
        url: `/monitoring/depot/file/${name}`,
        path: "/monitoring/depot/file/:name",
        parts: file("1.0.1"),
      },
      { method: "PUT", url: "/monitoring/depot/file", parts: { ...file("1.0.2"), name } },
      { method: "DELETE", url: `/monitoring/depot/${name}?version=1.0.0`, path: "/monitoring/depot/:name" },
    ],
    revision: (name, client) => tagged(client, `/monitoring/depot/${name}?version=1.0.0`),
    revisionAfter({ url, parts = {} }, client) {
      const { name = url.split("/").at(-1), newVersion } = parts;
      if (typeof newVersion !== "string") return undefined;
      return tagged(client, `/monitoring/depot/${String(name)}?version=${newVersion}`);
    },
  },
  {
    kind: "pattern",
    make: (name) => ({ method: "POST", url: `/pattern/${name}`, path: "/pattern/:name", form: { pattern: "[a-z]" } }),
    changes: (name) => [
      { method: "POST", url: `/pattern/${name}`, path: "/pattern/:name", form: { pattern: "[A-Z]" } },
      { method: "DELETE", url: `/pattern/${name}`, path: "/pattern/:name" },
    ],
    revision: (name, client) => tagged(client, `/pattern/${name}`),
  },
  {
    kind: "file",
    make: (name) => ({ method: "PUT", url: `/fs/${name}`, path: "/fs/*", parts: { data: "made" } }),
    changes: (name) => [
      { method: "PUT", url: `/fs/${name}`, path: "/fs/*", parts: { uploadfile: ["local", "put"] } },
      { method: "PUT", url: `/fs/${name}?type=tag`, path: "/fs/*", parts: { tags: "edited" } },
      { method: "POST", url: `/fs/${name}`, path: "/fs/*", parts: { data: "posted" } },
      { method: "POST", url: "/fs", parts: { uploadfile: [name, "uploaded"] } },
      { method: "POST", url: "/fs/rename", parts: { srcpath: `/${name}`, dstpath: `/${name}-renamed` } },
      { method: "POST", url: "/fs/move", parts: { srcpath: `/${name}`, dstpath: "/moved" } },
      { method: "DELETE", url: `/fs/${name}`, path: "/fs/*" },
    ],
    revision: (name, client) => tagged(client, `/fs/${name}?type=attr`),
    revisionAfter({ url, parts: { srcpath, dstpath } = {} }, client) {
      if (srcpath === undefined) return undefined;
      return tagged(client, `/fs${String(dstpath)}${url.endsWith("/move") ? String(srcpath) : ""}?type=attr`);
    },
  },
  {
    kind: "host",
    make: (name) => ({ method: "POST", url: "/host", json: { host: name } }),
    changes: (name) => [
      { method: "POST", url: "/host", json: { host: name, domain: "edited" } },
      { method: "DELETE", url: `/host/${name}`, path: "/host/:name" },
    ],
    revision: (name, client) => tagged(client, `/host/${name}`),
  },
  {
    kind: "class",
    make: (name) => ({ method: "POST", url: "/mxobject/schema/class", json: boxClass(name, ["name"]) }),
    changes: (name) => [
      // Several steps, which are one change.
      { method: "POST", url: "/mxobject/schema/class", json: { ...boxClass(name, ["name", "n", "m"]), alias: name } },
      { method: "DELETE", url: `/mxobject/schema/class?cid=/matrix/${name}` },
    ],
    revision: (name, client) => tagged(client, `/mxobject/schema/class?class=/matrix/${name}`),
  },
  {
    kind: "table",
    make: (name) => ({ method: "POST", url: `/extend/${name}`, path: "/extend/:name", json: [{ key: "a", v: "1" }] }),
    changes: (name) => [
      { method: "POST", url: `/extend/${name}`, path: "/extend/:name", json: [{ key: "a", v: "2" }] },
      { method: "PUT", url: `/extend/${name}`, path: "/extend/:name", json: [{ key: "b", v: "3" }] },
      { method: "DELETE", url: `/extend/${name}`, path: "/extend/:name" },
    ],
    revision: (name, client) => tagged(client, `/extend/${name}`),
  },
];

async function changesOfNode(name: string, client: Client): Promise<readonly Change[]> {
  const { message } = await client.get(`/admin/users?fullname=/${name}`);
  const { id } = message as { readonly id: string };
  const path = "/admin/users/:userid";
  return [
    { method: "POST", url: `/admin/users/${id}`, path, json: { remark: "edited" } },
    { method: "DELETE", url: `/admin/users/${id}`, path },
  ];
}

async function tagged(client: Client, url: string): Promise<string> {
  return required((await client.get(url)).tag);
}

async function listed(client: Client, url: string, name: string): Promise<string> {
  return revisionIn(await client.get(url), (one) => one.name === name);
}

interface Listed {
  readonly name?: string;
  readonly key?: string;
  readonly revision?: string;
}

function revisionIn({ message }: Answered, isWanted: (one: Listed) => boolean): string {
  return required((message as readonly Listed[]).find(isWanted)?.revision);
}

function required(revision: string | undefined): string {
  if (revision === undefined) throw new Error("The definition is not there, or has no revision.");
  return revision;
}

function job(name: string, description: string) {
  return { name, dir: "ops", exec: ["true"], description };
}

function hostGroup(name: string, host: string) {
  return { name, gtype: "group", hosts: [{ host }] };
}

function policy(name: string, command: string) {
  return { name, rule: "/matrix/rules/load", command, ctype: 1, interval: 1, unit: "minute" };
}

function logPolicy(name: string, match: string) {
  return { name, rule: "/matrix/rules/load", dir: "/var/log", match };
}

function ruleText(fields: string): string {
  return `--class=/matrix/box\n--parser=csv\n--fields=${fields}`;
}

function rule(name: string, fields: string) {
  return { key: `/matrix/rules/${name}`, value: ruleText(fields) };
}

function newRule(fields: readonly string[]) {
  return { class: "/matrix/box", type: "csv", fields };
}

function trigger(name: string, script: string) {
  return { class: "/matrix/box", name, script };
}

function node(username: string) {
  return { username, parent: "/", otype: "usr" };
}

function boxClass(name: string, fields: readonly string[]) {
  return { class: `/matrix/${name}`, fields: fields.map((field) => ({ name: field, type: "varchar" })) };
}

function depot(name: string, remark: string) {
  return { name, version: "1.0.0", remark, uploadfile: ["run.sh", remark] as const };
}

function file(newVersion: string) {
  return { version: "1.0.0", newVersion, filepath: "run.sh", type: "M", content: newVersion };
}
