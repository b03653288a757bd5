"""An arm of three joints that stands on the floor, to try calibration with; SI units."""

URDF = """\
<robot name="example_arm">
  <link name="base_link">
    <collision><origin xyz="0 0 0.15"/><geometry><cylinder radius="0.08" length="0.3"/></geometry></collision>
  </link>
  <link name="shoulder">
    <inertial>
      <origin xyz="0.01 0 0.03"/><mass value="3.0"/>
      <inertia ixx="0.012" ixy="0" ixz="0" iyy="0.012" iyz="0" izz="0.010"/>
    </inertial>
    <collision><origin xyz="0 0 0.05"/><geometry><sphere radius="0.07"/></geometry></collision>
  </link>
  <link name="upper_arm">
    <inertial>
      <origin xyz="0.18 0.02 0"/><mass value="4.0"/>
      <inertia ixx="0.010" ixy="0.001" ixz="0" iyy="0.070" iyz="0" izz="0.070"/>
    </inertial>
    <collision>
      <origin xyz="0.2 0 0" rpy="0 1.570796326795 0"/><geometry><cylinder radius="0.05" length="0.3"/></geometry>
    </collision>
  </link>
  <link name="forearm">
    <inertial>
      <origin xyz="0.14 0 0.02"/><mass value="2.0"/>
      <inertia ixx="0.004" ixy="0" ixz="0" iyy="0.024" iyz="0" izz="0.024"/>
    </inertial>
    <collision>
      <origin xyz="0.18 0 0" rpy="0 1.570796326795 0"/><geometry><cylinder radius="0.04" length="0.24"/></geometry>
    </collision>
  </link>
  <joint name="shoulder_pan" type="revolute">
    <parent link="base_link"/><child link="shoulder"/><origin xyz="0 0 0.4"/><axis xyz="0 0 1"/>
    <limit lower="-2.8" upper="2.8" velocity="2.5" effort="60"/>
  </joint>
  <joint name="shoulder_lift" type="revolute">
    <parent link="shoulder"/><child link="upper_arm"/><origin xyz="0 0 0.1"/><axis xyz="0 1 0"/>
    <limit lower="-2.2" upper="0.8" velocity="2.5" effort="90"/>
  </joint>
  <joint name="elbow" type="revolute">
    <parent link="upper_arm"/><child link="forearm"/><origin xyz="0.4 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-2.0" upper="2.0" velocity="3.0" effort="40"/>
  </joint>
</robot>
"""
