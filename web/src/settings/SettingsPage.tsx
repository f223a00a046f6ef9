import { useSearchParams } from "react-router";
import { useMe } from "../api/me";
import { Loading } from "../parts/Loading";
import { Tabs } from "../parts/Tabs";
import { usePageTitle } from "../parts/title";
import "./settings.css";
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
  usePageTitle("Settings");
  const me = useMe().data;
  const [view, setView] = useSearchParams();
  const [at, , Part] = TABS.find(([key]) => key === view.get("tab")) ?? TABS[0];
  if (!me) return <Loading />;
  return (
    <div className="page">
      <div className="page-head">
        <h1>Settings</h1>
      </div>
      <Tabs
        label="Settings"
        tabs={TABS.map(([key, name]) => [key, name] as const)}
        chosen={at}
        choose={(key) => setView(key ? { tab: key } : {})}
      >
        <Part me={me} />
      </Tabs>
    </div>
  );
}
