import { escapeHtml } from "../../../common/text/html.ts";
import { page, type Page } from "../users/index.ts";

/**
 * A page with a link to the provider. It has no form, because forms on our pages may submit to our own addresses only.
 */
export function departurePage(address: string): Page {
  return page(
    "Link an account",
    `<h1>One more step</h1>
<p>Sign in at the provider with the account that is to be yours here.</p>
<a class="button" href="${escapeHtml(address)}">Go on to the provider</a>
<p class="aside"><a href="/user/account">Leave it</a></p>
<p class="aside"><a href="/user/logout">Sign out</a></p>`,
  );
}
