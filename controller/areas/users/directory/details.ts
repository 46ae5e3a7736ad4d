import { zoneNamed } from "../../../../common/calendar/zones.ts";
import { AppError } from "../../../../common/errors.ts";
import type { Details } from "../types.ts";

export const NO_DETAILS: Details = {
  firstname: "",
  lastname: "",
  gender: "",
  address: "",
  imaccount: "",
  remark: "",
  auth: "",
  email: [],
  mobile: [],
  telephone: [],
  status: 1,
  config: {},
};

/** Key in `config` for the user's time zone. Statements of the user that name no zone use it. */
export const TIME_ZONE = "time_zone";

/**
 * `AppError("invalid")` for an unknown zone, because the user's statements would compute days in it. An empty name
 * means no zone. The stored value may stay, because clients send back values they have read.
 */
export function requireTimeZone(config: Details["config"] | undefined, present: Details["config"] = {}): void {
  const name = config?.[TIME_ZONE] ?? "";
  if (name === "" || name === present[TIME_ZONE] || zoneNamed(name)) return;
  throw new AppError("invalid", `config.${TIME_ZONE}: there is no time zone ${JSON.stringify(name)}.`, {
    details: { fields: ["config"] },
  });
}
