import { AppError } from "../../../common/errors.ts";
import type { Principal } from "./types.ts";

/**
 * Rechecks rights for work that continues after its call was admitted. The returned function reads the current
 * principal, and calls `check` again if the rights have changed. It throws the errors of `check`, and
 * `AppError("denied")` if the user may no longer listen.
 */
export function currentRights(
  present: () => Promise<Principal | undefined>,
  check: (principal: Principal) => Promise<void>,
): () => Promise<void> {
  let checked: Principal | undefined;
  return async () => {
    const now = await present();
    if (now === undefined) throw new AppError("denied", "The user is signed out, or lost the permission.");
    if (checked?.data === now.data && checked.grants === now.grants) return;
    await check(now);
    checked = now;
  };
}
