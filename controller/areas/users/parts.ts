import type { Runtime } from "../../runtime.ts";
import type { SecretBox } from "../../secrets/index.ts";
import type { Stores } from "../../store/engine.ts";
import type { Audit } from "../audit/index.ts";
import type { GroupService } from "../groups/index.ts";
import type { Objects } from "../objects/index.ts";
import type { Tenants } from "../tenants/index.ts";
import { UserChanges, type ChangedUser } from "./changes.ts";
import { passwordPolicy } from "./credentials/password-policy.ts";
import { Passwords } from "./credentials/passwords.ts";
import { signInParts } from "./credentials/sign-in-parts.ts";
import { Activity } from "./directory/activity.ts";
import { UserDirectory } from "./directory/directory.ts";
import { TreeStore } from "./directory/tree-store.ts";
import { OperatorAccess } from "./operator.ts";
import { StartPages } from "./pages/start-pages.ts";
import { LinkStore } from "./providers/link-store.ts";
import { ProviderSignIns } from "./providers/provider-signins.ts";
import { RecordedChanges } from "./recorded-changes.ts";
import { EffectiveRights } from "./rights/effective-rights.ts";
import { LeftWork } from "./rights/left-work.ts";
import { PendingRequirements } from "./second-factor/pending-requirements.ts";
import { SignInPolicyService } from "./second-factor/policy-service.ts";
import { StopsByPolicy } from "./second-factor/policy-stops.ts";
import { FactorService } from "./second-factor/service.ts";
import { CurrentUsers } from "./sessions/current.ts";
import { SessionOpening } from "./sessions/opening.ts";
import { Principals } from "./sessions/principals.ts";
import { SignInsService } from "./sessions/service.ts";
import { UserStore } from "./store.ts";
import type { AuthoredWork, BegunWork } from "./types.ts";

export interface UserDependencies {
  readonly runtime: Runtime;
  readonly stores: Stores;
  readonly tenants: Tenants;
  readonly audit: Audit;
  /** Kinds of work that stop when their author is deleted; none when absent. */
  readonly authored?: readonly AuthoredWork[];
  readonly begun?: readonly BegunWork[];
  /** Rights of users as members of groups; absent: users have only the rights given to them directly. */
  readonly groups?: Pick<GroupService, "rightsOf" | "forget" | "onChange" | "requireGroups">;
  /** Needed to apply rules about users; absent: such rules are not applied. */
  readonly objects?: Pick<Objects, "visible">;
  /** Seals second factors; absent: enrolling one is not possible. */
  readonly secrets?: SecretBox;
  /** Words of this installation that do not make a password stronger; none when absent. */
  readonly passwordWords?: readonly string[];
}

interface ChangeListeners {
  /** Called for every change that the watch reports. */
  readonly watched: (change: ChangedUser) => void;
  /** Called when the watch may have missed that sessions ended. */
  readonly missed: () => void;
  /** Called for a change of the sign-in policy by this controller. */
  readonly policyChanged: (change: ChangedUser) => void;
}

export type UserParts = ReturnType<typeof userParts>;

/** Makes the parts of the area from its dependencies. Nothing is read, and no watch begins. */
export function userParts(dependencies: UserDependencies, listeners: ChangeListeners) {
  const stored = storedParts(dependencies, listeners);
  const verifying = { ...stored, ...verifyingParts(dependencies, stored) };
  const known = { ...verifying, directory: directoryOf(dependencies, verifying) };
  return { ...known, ...servicesOf(dependencies, known, listeners) };
}

/** Users as they are stored, with their rights and requirements, and the watch of their changes. */
function storedParts(from: UserDependencies, { watched, missed }: ChangeListeners) {
  const { runtime, stores, audit, groups, secrets, begun = [] } = from;
  const users = new UserStore(stores, runtime.clock);
  const tree = new TreeStore(stores, runtime);
  const activity = new Activity(tree);
  const changes = new UserChanges({ stores, runtime, told: watched, missed });
  const follow = (tenant: string): void => changes.follow(tenant);
  return {
    ...{ users, tree, activity, changes, follow },
    current: new CurrentUsers({ users, activity, follow }),
    passwordFault: passwordPolicy(from.passwordWords ?? []),
    powers: new EffectiveRights(groups),
    requirements: new PendingRequirements(stores, runtime.clock, secrets !== undefined),
    startPages: new StartPages(stores),
    left: new LeftWork({ begun, audit }),
    recorded: new RecordedChanges(audit),
  };
}

type StoredParts = ReturnType<typeof storedParts>;

/** Parts that verify users, open sessions, and answer the principal of a call. */
function verifyingParts({ runtime, stores, tenants, audit, secrets }: UserDependencies, stored: StoredParts) {
  const passwords = new Passwords(stored.passwordFault);
  const signIn = signInParts({
    ...{ runtime, stores, tenants, audit, secrets, passwords },
    users: stored.users,
    activity: stored.activity,
    current: (tenant, username, epoch) => stored.current.find(tenant, username, { epoch }),
  });
  return {
    ...signIn,
    passwords,
    principals: new Principals({ ...stored, ...signIn, clock: runtime.clock, tenants }),
    opening: new SessionOpening({ ...stored, ...signIn }),
  };
}

type VerifyingParts = StoredParts & ReturnType<typeof verifyingParts>;

function directoryOf({ runtime, groups, objects, authored = [] }: UserDependencies, parts: VerifyingParts) {
  const { users, tree, left, powers, passwords, credentials, recorded, requirements, tokens } = parts;
  return new UserDirectory({
    ...{ runtime, groups, objects, passwords, authored, users, tree, left, powers },
    again: (principal, password) => credentials.again(principal, password),
    recorded: (principal, entry, change) => recorded.of(principal, entry, change),
    firstPasswordUntilMs: (tenant) => requirements.firstPasswordUntilMs(tenant),
    endTokens: (user) => tokens.removeAllOf(user),
  });
}

/** The services of the area for calls and for the operator. */
function servicesOf(
  { runtime, stores, tenants, audit }: UserDependencies,
  parts: VerifyingParts & { readonly directory: UserDirectory },
  { policyChanged }: ChangeListeners,
) {
  const { users, directory, sessionStore, opening } = parts;
  return {
    signIns: new SignInsService({ ...parts, sessions: sessionStore }),
    secondFactors: new FactorService(parts),
    signInPolicy: new SignInPolicyService({
      requirements: parts.requirements,
      stops: new StopsByPolicy({ ...parts, reader: directory.reader }),
      changed: policyChanged,
    }),
    operator: new OperatorAccess({ ...parts, random: runtime.random, tenants, audit }),
    providers: new ProviderSignIns({
      ...parts,
      ...{ runtime, tenants, audit },
      links: new LinkStore(stores, users),
      open: (verified, request) => opening.open(verified, request),
    }),
  };
}
