import { AppError } from "../../../../common/errors.ts";
import { SESSION_REMEMBERED_MS } from "../../../../common/limits.ts";
import type { Principal } from "../../permissions/index.ts";
import type { Verified } from "../credentials/credentials.ts";
import type { Activity } from "../directory/activity.ts";
import type { StartPages } from "../pages/start-pages.ts";
import type { EffectiveRights } from "../rights/effective-rights.ts";
import type { PendingRequirements } from "../second-factor/pending-requirements.ts";
import type { UserRecord } from "../store.ts";
import type { Opening, SignedIn } from "../types.ts";
import type { Sessions } from "./sessions.ts";

/** The page where people manage their sign-in. */
const ACCOUNT_PATH = "/user/account";

interface OpeningDependencies {
  readonly sessions: Sessions;
  readonly activity: Activity;
  readonly startPages: StartPages;
  readonly powers: EffectiveRights;
  readonly requirements: PendingRequirements;
}

/** Opens sessions for verified users, and chooses the page that a browser shows first. */
export class SessionOpening {
  readonly #with: OpeningDependencies;

  constructor(dependencies: OpeningDependencies) {
    this.#with = dependencies;
  }

  /** `AppError("denied")` if the user was made inactive since it was verified. */
  async open(
    { tenant, user }: Verified,
    { remember = false, redirect = "", remote, replaced }: Opening,
  ): Promise<SignedIn> {
    const { sessions, activity, startPages } = this.#with;
    const epoch = await activity.epochOf(user);
    if (epoch === undefined) throw new AppError("denied", `${user.username} was made inactive meanwhile.`);
    const session = await sessions.open(user, { ospace: tenant.ospace, remember, remote, epoch });
    if (replaced !== undefined) await sessions.close(replaced);
    const home = (await this.#owes(user))
      ? ACCOUNT_PATH
      : redirect || (user.home ?? (await startPages.get(tenant.name)));
    return { session, home, ...(remember && { lastingMs: SESSION_REMEMBERED_MS }) };
  }

  async #owes(user: UserRecord): Promise<Principal["owes"]> {
    const powers = await this.#with.powers.of(user);
    return powers && this.#with.requirements.of(user, powers);
  }
}
