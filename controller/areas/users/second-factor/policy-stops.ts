import { POLICY_STOPS_SHOWN_MAX } from "../../../../common/limits.ts";
import type { Principal } from "../../permissions/index.ts";
import type { Activity } from "../directory/activity.ts";
import type { DirectoryReader } from "../directory/reader.ts";
import type { PendingRequirements, SignInPolicy } from "./pending-requirements.ts";
import type { EffectiveRights } from "../rights/effective-rights.ts";
import type { UserStore } from "../store.ts";
import type { Tokens } from "../sessions/tokens.ts";

/** Programs that a policy stops. Each list has at most `POLICY_STOPS_SHOWN_MAX` entries; the counts are complete. */
export interface PolicyStops {
  /** Names of users whose Basic sign-in is refused until they have done what the policy requires. */
  readonly users: readonly string[];
  readonly userCount: number;
  /** Tokens that are refused until their users have done so. */
  readonly tokens: readonly { readonly user: string; readonly name: string }[];
  readonly tokenCount: number;
}

interface Dependencies {
  readonly activity: Activity;
  readonly requirements: Pick<PendingRequirements, "under">;
  readonly users: Pick<UserStore, "pages">;
  readonly powers: Pick<EffectiveRights, "of">;
  readonly tokens: Pick<Tokens, "namesIn">;
  readonly reader: Pick<DirectoryReader, "seenNames">;
}

const NOTHING: PolicyStops = { users: [], userCount: 0, tokens: [], tokenCount: 0 };

/** Finds programs that work under one sign-in policy and stop under another one. */
export class StopsByPolicy {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /** Includes only users whom the principal may see. */
  async between(
    principal: Principal,
    { before, after }: { readonly before: SignInPolicy; readonly after: SignInPolicy },
  ): Promise<PolicyStops> {
    // A password becomes a first password when it is set, by the policy of that time. So a change of `firstPasswords`
    // stops no program.
    if (before.secondFactor === after.secondFactor) return NOTHING;
    const { activity, requirements, users, powers, tokens, reader } = this.#with;
    const sees = await reader.seenNames(principal);
    const tokensOf = await tokens.namesIn(principal.tenant);
    const stopped: string[] = [];
    for await (const page of users.pages(principal.tenant)) {
      for (const { record } of page) {
        if (!sees(record.username) || !(await activity.isActive(record))) continue;
        const given = await powers.of(record);
        if (given === undefined || requirements.under(before, record, given) !== undefined) continue;
        if (requirements.under(after, record, given) !== undefined) stopped.push(record.username);
      }
    }
    const names = stopped.flatMap((user) => (tokensOf.get(user) ?? []).map((name) => ({ user, name })));
    return {
      users: stopped.slice(0, POLICY_STOPS_SHOWN_MAX),
      userCount: stopped.length,
      tokens: names.slice(0, POLICY_STOPS_SHOWN_MAX),
      tokenCount: names.length,
    };
  }
}
