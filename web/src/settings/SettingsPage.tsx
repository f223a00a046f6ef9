import { useSearchParams } from "react-router";
import { useMe } from "../api/me";
import { Page } from "../parts/Page";
import { Boundary } from "../parts/Panel";
import { Tabs } from "../parts/Tabs";
import { ChangesPart } from "./ChangesPart";
import { KeysPart } from "./KeysPart";
import { MePart } from "./MePart";
import { ProjectsPart } from "./ProjectsPart";
import { ServerPart } from "./ServerPart";

const TABS = [
  ["", "You", MePart],
  ["keys", "Keys", KeysPart],
  ["projects", "Projects", ProjectsPart],
  ["changes", "Changes", ChangesPart],
  ["server", "This server", ServerPart],
] as const;

export default function SettingsPage() {
  const me = useMe().data;
  const [view, setView] = useSearchParams();
  const [at, , Part] = TABS.find(([key]) => key === view.get("tab")) ?? TABS[0];
  return (
    <Page title="Settings">
      <Tabs
        label="Settings"
        tabs={TABS.map(([key, name]) => [key, name] as const)}
        chosen={at}
        choose={(key) => setView(key ? { tab: key } : {})}
      >
        <Boundary place={at}>{me && <Part me={me} />}</Boundary>
      </Tabs>
    </Page>
  );
}
