import type { SecretBox } from "../../secrets/index.ts";
import type { GroupName, StoredGroupHost } from "./group-store.ts";

/** Where the secret of a group's host is sent. */
export type Place = Pick<StoredGroupHost, "host" | "proxy" | "port" | "username">;

export interface SecretOwner {
  readonly tenant: string;
  readonly group: GroupName;
}

export function placeText({ host, proxy, port, username }: Place): string {
  return JSON.stringify([host, proxy, port, username]);
}

export function sealPassword(secrets: Pick<SecretBox, "seal">, owner: SecretOwner, of: PlacedPassword): string {
  return secrets.seal(of.password, passwordContext(owner, of.place));
}

interface PlacedPassword {
  readonly place: Place;
  /** Or a private key in PEM. */
  readonly password: string;
}

/** A group that leads elsewhere does not open the password, however it was written. */
export function passwordContext({ tenant, group: { gtype, name } }: SecretOwner, place: Place): string {
  return `${tenant}/group/${JSON.stringify([gtype, name])} for ${placeText(place)}`;
}
