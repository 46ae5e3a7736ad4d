import { readdir } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { ApiPermissions } from "./areas/groups/index.ts";
import { FileHistory, FileVersions, LocalFiles } from "./areas/files/index.ts";
import { HostTokens } from "./areas/hosts/index.ts";
import type { Principal } from "./areas/permissions/index.ts";
import { PolicyConfs, PolicyTargets } from "./areas/policies/index.ts";
import { FactorService, OperatorAccess, SignInPolicyService, SignInsService } from "./areas/users/index.ts";

/**
 * Every function of every class that an area exports must refuse a principal without rights before it uses its object:
 * it is called on an object without members. Functions that need no permission are listed below with the reason.
 * Members of a service that are services themselves are exported, too, if they take a principal (`UserService.signIns`);
 * others take none (`HostService.agents`, `peers`).
 */

const EVERY = "*";

/** Functions that need no permission. A class with `EVERY` has none that a route calls. */
const WITHOUT_PERMISSION: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Agenda: { [EVERY]: "no service" },
  AuditService: {
    ready: "asked by the gate of HTTP and by services before a change",
    write: "every call leaves its record, also a refused one",
    record: "every call leaves its record, also a refused one",
    inCommit: "every call leaves its record; the change asks for its permission",
    verifyNewest: "at the start, for each tenant",
    leave: "the tenant is deleted",
    start: "at the start",
    maintain: "maintenance",
    adopted: "maintenance",
    writeHeads: "for the audit area",
    close: "at the end",
  },
  HeadStore: { [EVERY]: "the store of the audit area" },
  AnchorFile: { [EVERY]: "the file of the audit area" },
  Anchoring: { [EVERY]: "for the audit area" },
  ConfigCache: { [EVERY]: "for the service of configuration, which shows what it answers by rights" },
  ConfigChanges: { [EVERY]: "for the service of configuration, and maintenance" },
  ConfigEntries: { [EVERY]: "for services that checked a permission of theirs" },
  ConsoleLogService: {
    stored: "tells followers, who ask for themselves",
    append: "by services, for what a script said",
  },
  ContextStores: { [EVERY]: "the store of contexts, for services" },
  DeploymentService: { maintain: "maintenance", gave: "asked for what an agent says" },
  DepotUsers: { [EVERY]: "asked by services before a change" },
  WaitingDeployments: {
    came: "at the assembly",
    maintain: "maintenance",
    settled: "maintenance",
    stop: "at the end",
  },
  FileSearchService: { maintain: "maintenance", settled: "maintenance", close: "at the end" },
  FileHistory: { sweep: "maintenance" },
  FileService: { maintain: "maintenance", settled: "maintenance", close: "at the end" },
  GroupService: {
    rightsOf: "asked at sign-in",
    rightsOfEveryone: "asked by services",
    forget: "a user is removed",
    onChange: "at the assembly",
    leave: "a tenant is deleted",
    close: "at the end",
  },
  HostService: {
    maintain: "maintenance",
    close: "at the end",
    onPresence: "at the assembly",
    isOnline: "asked by services",
    start: "at the start",
    refresh: "tells agents what is stored already",
  },
  HostTargets: { hosts: "by services that checked a permission of theirs; only expressions need hosts:read" },
  RepairService: { maintain: "maintenance", leave: "a tenant is deleted" },
  ScrubService: { maintain: "maintenance", settled: "maintenance", leave: "a tenant is deleted", close: "at the end" },
  RowCheckService: {
    maintain: "maintenance",
    leave: "a tenant is deleted",
    damaged: "for /readyz and /metrics, which name no rows",
    settled: "maintenance",
    close: "at the end",
  },
  ImportService: { maintain: "maintenance", settled: "maintenance", close: "at the end" },
  IngestService: { [EVERY]: "the agent's certificate is the right" },
  JobScheduler: { start: "at the start", stop: "at the end" },
  JobRuns: {
    goesOn: "asked by services",
    openState: "asked by services",
    askToEnd: "by services that checked who asks",
    gave: "asked for what an agent says",
    maintain: "maintenance",
    close: "at the end",
  },
  Firings: { [EVERY]: "a schedule runs with the rights of the user who saved it" },
  RetainedKeyParts: { [EVERY]: "the controller among its keys" },
  Resealing: { [EVERY]: "the controller among its keys" },
  Membership: { [EVERY]: "the controllers among themselves" },
  LicenceService: {
    shownOf: "asked by services",
    limits: "asked for new hosts",
    maintain: "maintenance",
    leave: "the tenant is deleted",
    keysOf: "the tenant's data is removed",
  },
  ProxiedHosts: { leads: "asked for where an agent is to connect" },
  NotificationHub: {
    publish: "by services, for what they did",
    receive: "the peer's certificate is the right",
    wanted: "asked by services",
    attach: "the peer's certificate is the right",
    interests: "told to other controllers",
    onInterests: "at the assembly",
  },
  NotificationRights: { visible: "answers nothing of what the principal may not see" },
  ObjectService: { [EVERY]: "data rules decide, class by class: `objects/` proves them" },
  ParseSlices: { [EVERY]: "no service" },
  RuleBodies: { [EVERY]: "for services that checked a permission of theirs; a body has the rights of its author" },
  RuleMemory: { [EVERY]: "no service" },
  RunRetention: { ran: "by the service that runs jobs", sweep: "maintenance" },
  RunAges: { sweep: "maintenance" },
  PolicyConfs: { sweep: "repair", sweepOf: "a policy is deleted" },
  PolicyTargets: {
    evaluate: "by services, with the present rights of who saved a policy",
    count: "maintenance",
    maintain: "maintenance",
    leave: "a tenant is deleted",
    close: "at the end",
  },
  SshPolicyRunner: { start: "at the start", stop: "at the end" },
  PolicyService: { desired: "for the host's agent", repair: "repair", maintain: "maintenance" },
  QueryService: {
    rows: "for services that checked a permission of theirs; data rules decide",
    maintain: "maintenance",
    close: "at the end",
  },
  RawBytesShares: { [EVERY]: "no service" },
  RecentRecords: { [EVERY]: "for services that checked who may see raw records" },
  RecordWriter: { [EVERY]: "the agent's certificate is the right" },
  RuleRetries: { [EVERY]: "of records that the certificate of an agent brought; a body has the rights of its author" },
  RuleService: { leave: "a tenant is deleted" },
  RunLogs: { [EVERY]: "by services, for what their runs said" },
  SentPolicies: { [EVERY]: "the agent's certificate is the right" },
  Slices: { [EVERY]: "no service" },
  StoredCommands: { [EVERY]: "asked by services for what they sent" },
  StoredTrail: { [EVERY]: "the store of the audit area" },
  RunAccess: { environmentOf: "by runs, for their commands", byRun: "the token of a run is the right" },
  TagService: { maintain: "maintenance", settled: "maintenance", close: "at the end" },
  TenantGate: { [EVERY]: "before sign-in" },
  TenantRemoval: { [EVERY]: "maintenance" },
  TenantService: { [EVERY]: "before sign-in" },
  TenantUse: { [EVERY]: "of the controller itself: the call that grows has its right" },
  OpenIdService: {
    begin: "before sign-in",
    beginLink: "the caller's own, with the password",
    finish: "what the provider vouches for is the right",
    own: "the caller's own",
    unlinkOwn: "the caller's own, with the password",
  },
  ProviderSignIns: {
    signIn: "what the provider vouches for is the right",
    beginLink: "the caller's own, with the password",
    finishLink: "the caller's own, begun with the password",
    own: "the caller's own",
    unlinkOwn: "the caller's own, with the password",
  },
  DirectoryReader: {
    self: "the caller's own",
    nodes: "the caller's own alone without users:read",
  },
  UnstoredRows: { [EVERY]: "what a write tells of its rows" },
  UserDirectory: {
    setOwnHome: "the caller's own; refused to a principal that reads only",
    setOwnPassword: "after the password, by UserService",
    repair: "repair",
  },
  TriggerService: {
    before: "by the object database, inside a write that was permitted",
    after: "by the object database, for changes that were made",
    maintain: "maintenance",
    settled: "waits for what is being stored",
    close: "at the end",
  },
  SignInsService: {
    makeToken: "the caller's own, of rights the caller has",
    tokens: "the caller's own",
    removeToken: "the caller's own; refused to a principal that reads only",
    sessions: "the caller's own",
    endOtherSessions: "the caller's own; refused to a principal that reads only",
    endSession: "the caller's own; refused to a principal that reads only",
  },
  FactorService: {
    begin: "the caller's own, with the password",
    confirm: "the caller's own; refused to a principal that reads only",
    remove: "the caller's own, with the password",
    codesLeft: "the caller's own",
  },
  OperatorAccess: {
    ensureAdministrator: "at the start",
    resetPassword: "an operator with access to the store",
    resetSecondFactor: "an operator with access to the store",
  },
  UserService: {
    onChange: "at the assembly",
    byToken: "the token is the right",
    start: "at the start",
    stop: "at the end",
    signIn: "the password is the right",
    signInByCode: "password and code are the right",
    changeOwnPassword: "the caller's own, with the password",
    signOut: "the session is the right; refused to a principal that reads only",
    bySession: "the session is the right",
    byKnownSession: "the session is the right",
    byPassword: "the password is the right",
    present: "answers the rights there are",
  },
};

const POWERLESS: Principal = {
  tenant: "matrix",
  ospace: "/matrix",
  user: "powerless",
  groups: [],
  grants: [],
  data: [],
  traceparent: "",
};

/** Other parameters may be destructured before the first line. */
type Method = (principal: Principal, ...others: readonly object[]) => unknown;

const classes = await exportedClasses();
const functions = [...classes].flatMap(([name, prototype]) =>
  methodsOf(prototype).map(([method, call]) => ({ name, method, call, prototype })),
);
const exempt = (name: string, method: string): boolean => {
  const reasons = WITHOUT_PERMISSION[name] ?? {};
  return EVERY in reasons || method in reasons;
};

describe("a principal without rights is refused by", () => {
  const checked = functions.filter(({ name, method }) => !exempt(name, method));
  test.each(checked)("$name $method", async ({ call, prototype }) => {
    await expect(
      outcomeOf(() => call.call(Object.create(prototype) as object, POWERLESS, {}, {})),
    ).rejects.toMatchObject({
      code: "denied",
      details: { permission: expect.stringMatching(/^[a-z]+:(read|write|run)$/) },
    });
  });
});

test("services that routes reach as members of another service are checked, too", () => {
  const members = [
    FileHistory,
    FileVersions,
    LocalFiles,
    FactorService,
    HostTokens,
    OperatorAccess,
    PolicyConfs,
    PolicyTargets,
    SignInPolicyService,
    SignInsService,
  ];
  for (const service of [ApiPermissions, ...members]) expect(classes.get(service.name)).toBe(service.prototype);
});

test("what needs no permission is there", () => {
  const known = new Set(functions.flatMap(({ name, method }) => [`${name}.${EVERY}`, `${name}.${method}`]));
  const listed = Object.entries(WITHOUT_PERMISSION).flatMap(([name, reasons]) =>
    Object.keys(reasons).map((method) => `${name}.${method}`),
  );
  expect(listed.filter((name) => !known.has(name))).toEqual([]);
});

async function exportedClasses(): Promise<ReadonlyMap<string, object>> {
  const folder = new URL("areas/", import.meta.url);
  const found = new Map<string, object>();
  for (const area of await readdir(folder)) {
    const exported = (await import(new URL(`${area}/index.ts`, folder).href)) as Readonly<Record<string, unknown>>;
    for (const [name, value] of Object.entries(exported)) {
      if (typeof value === "function" && typeof value.prototype === "object" && methodsOf(value.prototype).length > 0)
        found.set(name, value.prototype as object);
    }
  }
  return found;
}

function methodsOf(prototype: unknown): readonly (readonly [string, Method])[] {
  return Object.entries(Object.getOwnPropertyDescriptors(prototype as object)).flatMap(([name, { value }]) =>
    name !== "constructor" && typeof value === "function" ? [[name, value as Method] as const] : [],
  );
}

/** The result; for a function that returns pages, the first page. */
async function outcomeOf(call: () => unknown): Promise<unknown> {
  const answer = await call();
  const pages = answer as Partial<AsyncIterable<unknown>> | undefined;
  return pages?.[Symbol.asyncIterator] ? pages[Symbol.asyncIterator]?.().next() : answer;
}
