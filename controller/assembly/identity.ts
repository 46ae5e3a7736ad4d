import { GroupService } from "../areas/groups/index.ts";
import { RetainedKeyParts, KeyService, keysKnown, Resealing } from "../areas/keys/index.ts";
import { LicenceService } from "../areas/licences/index.ts";
import { CompanyService, TenantRemoval } from "../areas/tenants/index.ts";
import { UserService } from "../areas/users/index.ts";
import type { Core } from "./core.ts";

export type Identity = Awaited<ReturnType<typeof identity>>;

/** Rights and their holders: groups, users, tenants and licences; and the keys by which their data is sealed. */
export async function identity(from: Core) {
  const { options, points, runtime, stores, objects } = from;
  const { offered: directory } = points.directory;
  const groups = new GroupService({
    runtime,
    stores,
    seenNames: (principal) => directory.seenNames(principal),
    left: (principal, narrowed) => points.leftWork.offered.leftByGroup(principal, narrowed),
    catalogOf: (principal) => objects.catalog(principal),
    knownNames: (principal, names) => directory.knownNames(principal, names),
    likeName: (principal, name) => directory.likeName(principal, name),
  });
  const users = new UserService({
    ...{ runtime, stores, tenants: from.tenants, audit: from.audit, groups, objects, secrets: from.secrets },
    ...(options.passwordWords && { passwordWords: options.passwordWords }),
    authored: [points.authoredJobs.offered, points.authoredTriggers.offered, points.authoredRules.offered],
    begun: [
      points.begunRuns.offered,
      points.begunBatches.offered,
      points.begunImports.offered,
      points.begunDeployments.offered,
    ],
  });
  points.directory.fill(users.directory.reader);
  points.leftWork.fill(users);
  const parts = await keptParts(from);
  const licensed = licensing(from, users);
  return { groups, users, parts, ...licensed, ...sealing(from, parts, licensed.companies) };
}

async function keptParts({ secrets, membership, stores, runtime, points: { areas } }: Core): Promise<RetainedKeyParts> {
  secrets.begin(keysKnown(membership.all()));
  await membership.tellKeys();
  const parts = new RetainedKeyParts({
    kv: (await stores.system()).kv,
    secrets,
    runtime,
    contexts: areas.parts(({ derivations }) => derivations),
  });
  await parts.load();
  return parts;
}

function licensing({ options, points, engine, runtime, stores, tenants, membership, use }: Core, users: UserService) {
  const licences = new LicenceService({
    stores,
    runtime,
    keys: options.licenseKeys ?? [],
    isFirst: (tenant) => tenants.isFirst(tenant),
    requireTenant: async (tenant) => void (await tenants.ospaceOf(tenant)),
    hosts: points.hostCounts.offered,
  });
  const removal = new TenantRemoval({
    engine,
    runtime,
    gate: stores,
    controllers: membership,
    keysOf: () => points.areas.all.flatMap((area) => area.keysOf?.bind(area) ?? []),
  });
  const companies = new CompanyService({
    engine,
    runtime,
    gate: stores,
    users,
    controllers: membership,
    passwordFault: users.passwordFault,
    onDue: () => removal.soon(),
    licenseOf: (tenant) => licences.shownOf(tenant),
    use,
  });
  return { licences, removal, companies };
}

/** Services that replace the key by which stored secrets are sealed. */
function sealing(
  { options, points, secrets, runtime, membership, tenants }: Core,
  parts: RetainedKeyParts,
  companies: CompanyService,
) {
  const sealedKinds = points.areas.parts(({ sealed }) => sealed);
  const source = options.keySource ?? { kind: "text", text: "" };
  const resealing = new Resealing({
    ...{ secrets, runtime, tenants, parts },
    controllers: membership,
    kinds: sealedKinds,
    rereads: source.kind === "file",
    settleMs: options.keySettleMs,
  });
  const keys = new KeyService({
    ...{ secrets, source, resealing, tenants, companies },
    kinds: sealedKinds,
    controllers: membership,
    isFirst: (tenant) => tenants.isFirst(tenant),
  });
  return { sealedKinds, resealing, keys };
}
