//! Tests of staging.

use std::collections::BTreeMap;
use std::fs;

use super::*;
use practicum_core::model::{CasePrompt, FileChangeKind, Fixture, PassRule, WorkspaceSpec};

struct Scene {
    root: tempfile::TempDir,
}

impl Scene {
    fn new(files: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir().expect("a folder");
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("create");
            fs::write(path, content).expect("write");
        }
        Self { root }
    }

    fn stage(&self, arm: Arm, room: WorkspaceSpec) -> Result<Workspace, StageError> {
        let project = self.root.path().join("project");
        let skill =
            SkillRef { name: "greeter".into(), path: Some(project.join("skills/greeter")), plugin: None };
        let rival = project.join("skills/rival");
        let case = Case {
            user: None,
            id: "c".into(),
            group: None,
            note: None,
            prompt: CasePrompt::Turns(vec!["hi".into()]),
            workspace: room,
            mocks: Default::default(),
            checks: Vec::new(),
            context: None,
            timeout: None,
            repeat: None,
            pass_rule: PassRule::EveryRequiredCheck,
            known_good_output: None,
            unsupported: None,
            meta: BTreeMap::new(),
        };
        stage_workspace(&StagingRequest {
            case: &case,
            skills: &[skill],
            rivals: &[SkillRef { name: "rival".into(), path: rival.is_dir().then_some(rival), plugin: None }],
            plugins: &[],
            allow_plugin_code: false,
            arm,
            skills_dir: &RelPath::new(".claude/skills").expect("relative"),
            project: &project,
            hidden_files: &HiddenFiles::new(
                ["answers.yaml", "skills/greeter/cases.json"].map(|path| project.join(path)),
            ),
            root: self.root.path().join("room"),
            alias_ending: "x7",
            add_canaries: false,
        })
    }
}

fn listing(workspace: &Workspace) -> Vec<String> {
    Snapshot::of_folder(&workspace.folder)
        .changes(&Snapshot::default())
        .into_iter()
        .map(|file| file.path.to_string())
        .collect()
}

const PROJECT: &[(&str, &str)] = &[
    ("project/README.md", "hello"),
    ("project/.gitignore", "ignored.txt\n"),
    ("project/ignored.txt", "x"),
    ("project/.git/config", "x"),
    ("project/node_modules/a/index.js", "x"),
    ("project/answers.yaml", "the expectations"),
    ("project/evals/x.yaml", "the expectations"),
    ("project/skills/greeter/SKILL.md", "---\nname: greeter\ndescription: d\n---\nbody"),
    ("project/skills/greeter/references/a.md", "ref"),
    ("project/skills/greeter/evals/evals.json", "the expectations"),
    ("project/skills/greeter/cases.json", "the expectations"),
    ("project/skills/greeter-workspace/rounds/1/blind.json", "what judges said"),
    ("project/.claude/skills/greeter/SKILL.md", "an older copy"),
    ("project/.claude/skills/other/SKILL.md", "---\nname: other\n---\n"),
];

#[test]
fn the_agent_cannot_read_the_expectations() {
    let scene = Scene::new(PROJECT);
    let room = WorkspaceSpec { base: WorkspaceBase::Project, ..WorkspaceSpec::default() };
    let workspace = scene.stage(Arm::WithSkill, room).expect("staged");
    assert_eq!(
        listing(&workspace),
        [
            ".claude/skills/greeter/SKILL.md",
            ".claude/skills/greeter/references/a.md",
            ".claude/skills/other/SKILL.md",
            ".gitignore",
            "README.md",
            "ignored.txt",
        ]
    );
    let staged = fs::read_to_string(workspace.folder.join(".claude/skills/greeter/SKILL.md")).expect("read");
    assert!(staged.contains("body"), "the skill under test wins over an older copy");
}

#[test]
fn the_without_skill_arm_has_no_copy_of_the_skill() {
    let scene = Scene::new(PROJECT);
    let room = WorkspaceSpec { base: WorkspaceBase::Project, ..WorkspaceSpec::default() };
    let workspace = scene.stage(Arm::WithoutSkill, room).expect("staged");
    assert!(listing(&workspace).iter().all(|path| !path.contains("greeter")), "{:?}", listing(&workspace));
}

#[test]
fn an_alias_is_the_only_name_in_the_room() {
    let scene = Scene::new(PROJECT);
    let room = WorkspaceSpec { skill_name: StagedSkillName::Alias, ..WorkspaceSpec::default() };
    let workspace = scene.stage(Arm::WithSkill, room).expect("staged");
    assert_eq!(workspace.staged_names, ["greeter-x7"]);
    let text = fs::read_to_string(workspace.folder.join(".claude/skills/greeter-x7/SKILL.md")).expect("read");
    assert!(text.starts_with("---\nname: greeter-x7\ndescription: d\n---\n"), "{text}");
}

#[test]
fn changes_and_read_only_files_are_noticed() {
    let scene = Scene::new(&[
        ("project/skills/greeter/SKILL.md", "x"),
        ("given/a.txt", "a"),
        ("given/b.txt", "b"),
        ("given/c.txt", "c"),
    ]);
    let fixture = |name: &str, access| Fixture {
        source: scene.root.path().join("given").join(name),
        destination: RelPath::new(&format!("in/{name}")).expect("relative"),
        access,
    };
    let files = vec![
        fixture("a.txt", FixtureAccess::ReadOnly),
        fixture("b.txt", FixtureAccess::ReadOnly),
        fixture("c.txt", FixtureAccess::Mutable),
    ];
    let workspace =
        scene.stage(Arm::WithSkill, WorkspaceSpec { files, ..WorkspaceSpec::default() }).expect("staged");
    assert_eq!(workspace.changes(), []);
    let fates = || workspace.given_files().iter().map(|given| given.fate.name()).collect::<Vec<_>>();
    assert_eq!(fates(), ["unchanged", "unchanged"]);
    fs::write(workspace.folder.join("in/a.txt"), "A").expect("write");
    fs::write(workspace.folder.join("in/c.txt"), "C").expect("write");
    fs::write(workspace.folder.join("new.txt"), "n").expect("write");
    fs::remove_file(workspace.folder.join("in/b.txt")).expect("remove");
    let changes: Vec<(String, FileChangeKind)> =
        workspace.changes().into_iter().map(|file| (file.path.to_string(), file.change)).collect();
    let expected = [
        ("in/a.txt", FileChangeKind::Changed),
        ("in/b.txt", FileChangeKind::Deleted),
        ("in/c.txt", FileChangeKind::Changed),
        ("new.txt", FileChangeKind::Created),
    ];
    assert_eq!(changes, expected.map(|(path, change)| (path.to_owned(), change)));
    assert_eq!(fates(), ["changed", "deleted"]);
    let complaints: Vec<String> =
        workspace.given_files().iter().filter_map(GivenFile::describe_problem).collect();
    assert_eq!(
        complaints,
        [
            "the agent changed in/a.txt, which was given as read-only",
            "the agent deleted in/b.txt, which was given as read-only"
        ]
    );
}

#[test]
fn a_missing_fixture_is_an_error_before_anything_is_spent() {
    let scene = Scene::new(&[("project/skills/greeter/SKILL.md", "x")]);
    let fixture = Fixture {
        source: scene.root.path().join("nowhere.txt"),
        destination: RelPath::new("a").expect("relative"),
        access: FixtureAccess::ReadOnly,
    };
    let staged =
        scene.stage(Arm::WithSkill, WorkspaceSpec { files: vec![fixture], ..WorkspaceSpec::default() });
    assert!(matches!(staged, Err(StageError::MissingFixture(_))));
}

#[test]
fn a_view_does_not_follow_links_out() {
    let scene = Scene::new(&[("project/skills/greeter/SKILL.md", "x"), ("secret.txt", "s")]);
    let workspace = scene.stage(Arm::WithSkill, WorkspaceSpec::default()).expect("staged");
    std::os::unix::fs::symlink(scene.root.path().join("secret.txt"), workspace.folder.join("link"))
        .expect("link");
    use practicum_core::model::WorkspaceView;
    let link = RelPath::new("link").expect("relative");
    assert!(matches!(workspace.view().exists(&link), Ok(false)));
    assert_eq!(workspace.view().read(&link).expect("readable"), None);
}

#[test]
fn a_room_is_gone_when_dropped_even_if_made_unwritable() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new(&[("project/skills/greeter/SKILL.md", "x")]);
    let workspace = scene.stage(Arm::WithSkill, WorkspaceSpec::default()).expect("staged");
    let locked = workspace.folder.join("locked");
    fs::create_dir(&locked).expect("create");
    fs::write(locked.join("f"), "x").expect("write");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o500)).expect("lock");
    let room = workspace.root().to_owned();
    drop(workspace);
    assert!(!room.exists());
}

#[test]
fn rivals_are_there_in_every_arm() {
    let scene = Scene::new(&[
        ("project/skills/greeter/SKILL.md", "---\nname: greeter\n---\n"),
        ("project/skills/rival/SKILL.md", "---\nname: rival\n---\n"),
    ]);
    for (arm, expected) in [(Arm::WithSkill, 2), (Arm::WithoutSkill, 1)] {
        let workspace = scene.stage(arm, WorkspaceSpec::default()).expect("staged");
        assert_eq!(listing(&workspace).len(), expected, "{arm:?}");
    }
}
