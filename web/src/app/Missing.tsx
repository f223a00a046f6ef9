import { ButtonLink } from "../parts/Button";
import { Page } from "../parts/Page";

export default function Missing() {
  return (
    <Page title="There is no such page" tab="No such page">
      <ButtonLink to="/">Go to the overview</ButtonLink>
    </Page>
  );
}
